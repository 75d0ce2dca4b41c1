// SPDX-License-Identifier: Apache-2.0
// A chart with a row a setting and a panel a measure: the bar is the middle run, the line across
// its end goes from the least run to the most. All of it is text and SVG without a script.
#include "tool/cmds/whatif.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum {
    PANELS = 3,
    NAME_WIDTH = 420,
    PANEL_WIDTH = 255,
    BAR_WIDTH = 150,
    STEP = 24,
    BAR_HEIGHT = 12
};
enum { HEAD_HEIGHT = 26, GAP = 8, CAP_HEIGHT = 6, NOTES_COLUMNS = 4000 };

static const char *const titles[PANELS] = {"resident at the peak", "resident, 95 % of blocks freed",
                                           "time in the allocator, a call"};
static const char *const classes[PANELS] = {"peak", "freed", "time"};

static const struct whatif_spread *spread_of(const struct whatif_row *row, int panel) {
    const struct whatif_spread *const spreads[PANELS] = {&row->peak, &row->freed, &row->ns};
    return spreads[panel];
}

static struct unit_text value_text(double value, int panel) {
    struct unit_text text;
    if (panel + 1 < PANELS) return units_size((int64_t)value);
    snprintf(text.text, sizeof text.text, "%.1f ns", value);
    return text;
}

static void put_text(FILE *out, const char *text) {
    char safe[WHATIF_LINE_BYTES];
    text_escape(safe, sizeof safe, text);
    text_put_markup(out, safe);
}

// --- the chart

static void put_bar(FILE *out, const struct whatif_spread *spread, double most, int panel, int y) {
    const int left = NAME_WIDTH + panel * PANEL_WIDTH, middle = y + BAR_HEIGHT / 2;
    double scale = most > 0 ? BAR_WIDTH / most : 0;
    double least_x = left + spread->least * scale, most_x = left + spread->most * scale;
    fprintf(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
            classes[panel], left, y, spread->middle * scale, BAR_HEIGHT);
    fprintf(out, "<path d=\"M%.1f %dH%.1fM%.1f %dv%dM%.1f %dv%d\"/>", least_x, middle, most_x,
            least_x, middle - CAP_HEIGHT / 2, CAP_HEIGHT, most_x, middle - CAP_HEIGHT / 2,
            CAP_HEIGHT);
    fprintf(out, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", most_x + GAP, y + BAR_HEIGHT - 2,
            value_text(spread->middle, panel).text);
}

static void put_chart_row(FILE *out, const struct whatif_row *row, const double *most, int y) {
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"><tspan class=\"name\">",
            NAME_WIDTH - GAP, y + BAR_HEIGHT - 2);
    put_text(out, row->trial->allocator);
    fputs("</tspan> ", out);
    put_text(out, whatif_setting(row));
    fputs("</text>\n", out);
    for (int panel = 0; panel < PANELS; panel++)
        put_bar(out, spread_of(row, panel), most[panel], panel, y);
}

static void put_chart(FILE *out, const struct whatif_table *table) {
    double most[PANELS] = {0};
    int y = HEAD_HEIGHT;
    for (size_t i = 0; i < table->count; i++)
        for (int panel = 0; panel < PANELS; panel++)
            if (!table->rows[i].problem.text[0] &&
                spread_of(&table->rows[i], panel)->most > most[panel])
                most[panel] = spread_of(&table->rows[i], panel)->most;
    fprintf(out,
            "<svg role=\"img\" aria-label=\"the figures of the table below as bars\" width=\"%d\" "
            "height=\"%zu\">\n",
            NAME_WIDTH + PANELS * PANEL_WIDTH, HEAD_HEIGHT + STEP * table->count);
    for (int panel = 0; panel < PANELS; panel++)
        fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n",
                NAME_WIDTH + panel * PANEL_WIDTH, HEAD_HEIGHT / 2, titles[panel]);
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].problem.text[0]) continue;
        put_chart_row(out, &table->rows[i], most, y);
        y += STEP;
    }
    fputs("</svg>\n", out);
}

// --- the table

static void put_row(FILE *out, const struct whatif_row *row) {
    char line[WHATIF_LINE_BYTES];
    fputs("<tr><td>", out);
    put_text(out, row->trial->allocator);
    if (row->problem.text[0]) {
        fprintf(out, "<td colspan=\"%d\">%s%s", 2 * PANELS + 1, whatif_setting(row),
                *whatif_setting(row) ? ": " : "");
        put_text(out, row->problem.text);
        return;
    }
    for (int panel = 0; panel < PANELS; panel++) {
        const struct whatif_spread *spread = spread_of(row, panel);
        fprintf(out, "<td class=\"number\">%s<td class=\"number\">%.0f %%",
                value_text(spread->middle, panel).text, whatif_range(spread));
    }
    whatif_line(row, line);
    fputs("<td><code>", out);
    put_text(out, line);
    fputs("</code>\n", out);
}

static void put_rows(FILE *out, const struct whatif_table *table) {
    fputs("<table><tr><th>allocator<th class=\"number\">peak resident"
          "<th class=\"number\">spread<th class=\"number\">95 % freed<th class=\"number\">spread"
          "<th class=\"number\">a call<th class=\"number\">spread<th>what switches over\n",
          out);
    for (size_t i = 0; i < table->count; i++) put_row(out, &table->rows[i]);
    fputs("</table>\n", out);
}

// --- the page

// The line that does most, as on the terminal.
static void put_conclusion(FILE *out, const struct whatif_table *table) {
    char conclusion[WHATIF_LINE_BYTES], line[WHATIF_LINE_BYTES];
    if (!whatif_conclude(table, conclusion, line)) return;
    fputs("<p>", out);
    put_text(out, conclusion);
    fputs("<code>", out);
    put_text(out, line);
    fputs("</code></p>\n", out);
}

// Without the blanks around it.
static const char *only_line(char *text) {
    text[strcspn(text, "\n")] = 0;
    return text + strspn(text, " ");
}

static bool put_notes(FILE *out, const struct whatif_table *table) {
    char *text = NULL;
    size_t size;
    FILE *notes = open_memstream(&text, &size);
    if (!notes) return false;
    const struct terminal terminal = {.out = notes, .columns = NOTES_COLUMNS};
    replay_print_notes(&terminal, table->order, table->script);
    bool is_ok = !fclose(notes);
    fprintf(out,
            "<p>%s, %s live at the peak; middle of %" PRIu64
            " runs, a line from the least to the most; ",
            units_counted((int64_t)table->script->call_count, "call", "calls").text,
            units_size((int64_t)table->script->peak_live_bytes).text, table->rounds);
    if (is_ok) put_text(out, only_line(text));
    fputs("</p>\n", out);
    free(text);
    return is_ok;
}

bool whatif_put_page(FILE *out, const struct whatif_table *table, struct error *error) {
    fputs("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>cairn "
          "whatif</title><style>"
          ":root{color-scheme:light dark;--text:#222;--page:#fff;--line:#999;--peak:#4a7fb5;"
          "--freed:#c9a14a;--time:#7a9e5b}"
          "@media(prefers-color-scheme:dark){:root{--text:#ddd;--page:#1b1b1d;--line:#777}}"
          "body{font:14px sans-serif;margin:24px;color:var(--text);background:var(--page)}"
          "td,th{padding:3px 10px;text-align:left;white-space:nowrap;vertical-align:top}"
          "th{border-bottom:1px solid var(--line)}.number{text-align:right}"
          "td:last-child{white-space:normal;min-width:34em}"
          "text{font:12px sans-serif;fill:var(--text)}.name{font-weight:bold}"
          "path{stroke:var(--text);fill:none}.peak{fill:var(--peak)}.freed{fill:var(--freed)}"
          ".time{fill:var(--time)}</style><h1>",
          out);
    put_text(out, text_base_name(table->order->log));
    fputs(" on other allocators</h1>\n", out);
    put_conclusion(out, table);
    bool is_ok = put_notes(out, table);
    put_chart(out, table);
    put_rows(out, table);
    fputs("</html>\n", out);
    return is_ok || error_set(error, "no memory for the page");
}
