// SPDX-License-Identifier: Apache-2.0
// A history as one page of HTML that needs nothing else: a small chart for each figure, the steps
// with the stacks that moved. No script: charts are SVG, what never moved is folded by the browser.
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/history/screen.h"

enum { CHART_WIDTH = 360, CHART_HEIGHT = 72, CHART_MARGIN = 8, MOVES_SHOWN = 5, STEP_BYTES = 256 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>Memory over commits</title>\n<style>\n"
    ":root{--back:#fff;--text:#1c1e21;--dim:#667;--line:#2b6cb0;--fill:#2b6cb022;--up:#c53030;"
    "--down:#2f855a;--edge:#dde}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#16181c;--text:#e6e7ea;--dim:#99a;"
    "--line:#63b3ed;--fill:#63b3ed22;--up:#fc8181;--down:#68d391;--edge:#334}}\n"
    "body{background:var(--back);color:var(--text);font:14px/1.45 system-ui,sans-serif;"
    "max-width:1180px;margin:24px auto;padding:0 16px}\n"
    "h1{font-size:20px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}"
    "h3{font-size:14px;margin:0 0 6px;overflow-wrap:anywhere}\n"
    "p.dim,.dim{color:var(--dim)}p.note{color:var(--up)}\n"
    ".series{border:1px solid var(--edge);border-radius:8px;padding:12px 14px;margin:10px 0}\n"
    ".charts{display:flex;flex-wrap:wrap;gap:10px 22px}\n"
    "figure{margin:0;width:360px}figcaption{display:flex;justify-content:space-between}\n"
    "svg{display:block;width:100%;height:72px}polyline{fill:none;stroke:var(--line);"
    "stroke-width:1.6;vector-effect:non-scaling-stroke}polygon{fill:var(--fill)}\n"
    "circle.up{fill:var(--up)}circle.down{fill:var(--down)}circle.at{fill:transparent}"
    "circle.at:hover{fill:var(--line)}\n"
    ".up{color:var(--up)}.down{color:var(--down)}\n"
    "code,pre{font:12.5px/1.4 ui-monospace,monospace}pre{margin:2px 0 8px 18px;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".step{border-left:3px solid var(--edge);padding:2px 0 2px 12px;margin:14px 0}"
    "summary{cursor:pointer;color:var(--dim)}\n"
    "</style></head><body>\n";

static void put_commit(FILE *out, const struct history_commit *commit) {
    char hash[GIT_SHORT + 2];
    snprintf(hash, sizeof hash, "%.*s%s", GIT_SHORT, commit->hash, commit->is_changed ? "+" : "");
    text_put_markup(out, hash);
}

// A chart has the lowest value at its bottom: what matters is what moves.
struct chart {
    const struct history *history;
    const struct history_series *series;
    struct history_line line;
    enum history_measure measure;
    int64_t low, high;
};

static double x_of(const struct chart *chart, size_t index) {
    double room = CHART_WIDTH - 2 * CHART_MARGIN;
    return CHART_MARGIN +
           (chart->line.count > 1 ? room * (double)index / (double)(chart->line.count - 1) : room);
}

static double y_of(const struct chart *chart, size_t index) {
    double room = CHART_HEIGHT - 2 * CHART_MARGIN, bottom = CHART_HEIGHT - CHART_MARGIN;
    double span = (double)chart->high - (double)chart->low;
    return span > 0
               ? bottom - room * ((double)chart->line.values[index] - (double)chart->low) / span
               : bottom - room / 2;
}

static void put_points(FILE *out, const struct chart *chart) {
    for (size_t i = 0; i < chart->line.count; i++) {
        if (i) fprintf(out, "%.1f,%.1f ", x_of(chart, i), y_of(chart, i - 1));
        fprintf(out, "%.1f,%.1f ", x_of(chart, i), y_of(chart, i));
    }
}

static const struct history_commit *commit_of(const struct chart *chart, size_t index) {
    uint32_t point = chart->line.points[index];
    return &chart->history->commits.items[chart->series->points.items[point].commit];
}

static const struct history_step *step_at(const struct chart *chart, size_t index) {
    const struct history *history = chart->history;
    for (size_t i = 0; i < history->steps.count; i++) {
        const struct history_step *step = &history->steps.items[i];
        if (&history->series.items[step->series] == chart->series &&
            step->measure == chart->measure &&
            history_after(history, step) == commit_of(chart, index))
            return step;
    }
    return NULL;
}

// A dot at each step, and one that shows itself below the pointer at each other commit.
static void put_dots(FILE *out, const struct chart *chart) {
    for (size_t i = 0; i < chart->line.count; i++) {
        const struct history_step *step = step_at(chart, i);
        const char *kind = !step ? "at" : step->new_level > step->old_level ? "up" : "down";
        fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>", kind,
                x_of(chart, i), y_of(chart, i));
        put_commit(out, commit_of(chart, i));
        fputc(' ', out);
        text_put_markup(out, history_subject(commit_of(chart, i)));
        fprintf(out, "\n%s</title></circle>",
                history_amount(chart->measure, chart->line.values[i]).text);
    }
}

static bool put_chart(FILE *out, const struct history *history, uint32_t index,
                      enum history_measure measure) {
    struct chart chart = {
        .history = history, .series = &history->series.items[index], .measure = measure};
    if (!history_line_of(chart.series, measure, &chart.line)) return false;
    size_t count = chart.line.count;
    for (size_t i = 0; i < count; i++) {
        if (!i || chart.line.values[i] < chart.low) chart.low = chart.line.values[i];
        if (!i || chart.line.values[i] > chart.high) chart.high = chart.line.values[i];
    }
    if (count) {
        fprintf(out, "<figure><figcaption><span>%s</span><span><b>%s</b>",
                history_measures[measure].name,
                history_amount(measure, chart.line.values[count - 1]).text);
        int64_t change = chart.line.values[count - 1] - chart.line.values[0];
        if (change)
            fprintf(out, " <span class=\"%s\">%s</span>", change > 0 ? "up" : "down",
                    history_change(measure, change).text);
        fprintf(out,
                "</span></figcaption><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">"
                "<polygon points=\"%.1f,%d ",
                CHART_WIDTH, CHART_HEIGHT, x_of(&chart, 0), CHART_HEIGHT);
        put_points(out, &chart);
        fprintf(out, "%.1f,%d\"/><polyline points=\"", x_of(&chart, count - 1), CHART_HEIGHT);
        put_points(out, &chart);
        fputs("\"/>", out);
        put_dots(out, &chart);
        fputs("</svg></figure>\n", out);
    }
    history_line_free(&chart.line);
    return true;
}

// Figures that moved, and the peak; the others are folded.
static bool put_series(FILE *out, const struct history *history, const struct history_view *view,
                       uint32_t index) {
    char name[HISTORY_NAME_BYTES];
    history_series_name(&history->series.items[index], name);
    fputs("<section class=\"series\"><h3>", out);
    text_put_markup(out, name);
    fputs("</h3>", out);
    for (int is_folded = 0; is_folded <= (view->measure < 0); is_folded++) {
        fputs(is_folded ? "<details><summary>what never moved</summary><div class=\"charts\">"
                        : "<div class=\"charts\">",
              out);
        for (int measure = 0; measure < HISTORY_MEASURES; measure++) {
            enum history_measure which = (enum history_measure)measure;
            bool is_first = view->measure < 0 ? measure == HISTORY_PEAK ||
                                                    history_count_steps(history, index, which) ||
                                                    history_is_open(history, index, which)
                                              : measure == view->measure;
            if (is_first == (is_folded != 0)) continue;
            if (!put_chart(out, history, index, which)) return false;
        }
        fputs(is_folded ? "</div></details>" : "</div>", out);
    }
    fputs("</section>\n", out);
    return true;
}

static bool put_step(FILE *out, struct history *history, const struct history_step *step,
                     struct error *error) {
    struct history_moves moves;
    char name[HISTORY_NAME_BYTES], text[STEP_BYTES];
    if (!history_moves_find(history, step, MOVES_SHOWN, &moves, error)) return false;
    history_series_name(&history->series.items[step->series], name);
    history_step_text(step, text, sizeof text);
    fputs("<div class=\"step\"><code>", out);
    put_commit(out, history_after(history, step));
    fputs("</code> ", out);
    text_put_markup(out, history_subject(history_after(history, step)));
    fputs(" <span class=\"dim\">since <code>", out);
    put_commit(out, history_before(history, step));
    size_t between = history_commits_between(history, step);
    fputs("</code>", out);
    if (between > 1) fprintf(out, ", one of %zu commits", between);
    fputs("</span><br><b>", out);
    text_put_markup(out, name);
    fprintf(out, "</b> %s: <span class=\"%s\">", history_measures[step->measure].name,
            step->new_level > step->old_level ? "up" : "down");
    text_put_markup(out, text);
    fputs("</span>", out);
    const char *old_system, *new_system;
    if (history_system_changed(history, step, &old_system, &new_system)) {
        fputs("<br>recorded on ", out);
        text_put_markup(out, new_system);
        fputs(", before on ", out);
        text_put_markup(out, old_system);
    }
    fputs("<pre>", out);
    for (size_t i = 0; i < moves.list.count; i++) {
        const struct history_moved *moved = &moves.list.items[i];
        fprintf(out, "%12s  ", history_change(step->measure, moved->after - moved->before).text);
        text_put_markup(out, moved->frames);
        if (moved->place) fputs("  ", out);
        text_put_markup(out, moved->place ? moved->place : "");
        fputc('\n', out);
    }
    fputs("</pre></div>\n", out);
    history_moves_free(&moves);
    return true;
}

static void put_open(FILE *out, const struct history *history, const struct history_view *view) {
    for (size_t i = 0; i < history->open.count; i++) {
        const struct history_step *step = &history->open.items[i];
        char name[HISTORY_NAME_BYTES], text[STEP_BYTES];
        if (!history_step_is_shown(history, view, step)) continue;
        history_series_name(&history->series.items[step->series], name);
        history_open_text(step, text, sizeof text);
        fputs("<p class=\"note\">Not known yet: <b>", out);
        text_put_markup(out, name);
        fprintf(out, "</b> %s: ", history_measures[step->measure].name);
        text_put_markup(out, text);
        fputs("</p>\n", out);
    }
}

static void put_heading(FILE *out, const struct history *history) {
    fputs(head, out);
    fputs("<h1>Memory over commits</h1><p class=\"dim\">", out);
    fprintf(out, "%s", units_counted((int64_t)history->run_count, "run", "runs").text);
    if (history->commits.count) {
        fprintf(out, " of %s, <code>",
                units_counted((int64_t)history->commits.count, "commit", "commits").text);
        put_commit(out, &history->commits.items[0]);
        fputs("</code> to <code>", out);
        put_commit(out, &history->commits.items[history->commits.count - 1]);
        fputs("</code>", out);
    }
    fputs("</p>", out);
    if (!*history->note) return;
    fputs("<p class=\"note\">", out);
    text_put_markup(out, history->note);
    fputs("</p>", out);
}

// Says that nothing moved, if that is so.
static void put_rest(FILE *out, const struct history *history, const struct history_view *view) {
    char sentence[CLAIM_SENTENCE_BYTES] = "";
    struct claim claim;
    if (history_claim_of_rest(history, view, &claim)) claim_sentence(&claim, false, sentence);
    fputs("<p class=\"dim\">None", out);
    if (*sentence) fputs(": ", out);
    text_put_markup(out, sentence);
    fputs(".</p>", out);
}

bool history_write_page(struct history *history, const struct history_view *view, FILE *out,
                        struct error *error) {
    bool is_ok = true;
    size_t steps = 0;
    put_heading(out, history);
    fputs("<h2>Figures</h2>\n", out);
    for (uint32_t i = 0; i < history->series.count; i++)
        if (history_is_shown(view, &history->series.items[i]) && !put_series(out, history, view, i))
            return error_set(error, "no memory for the page");
    fputs("<h2>Steps, the newest first</h2>\n", out);
    for (size_t i = 0; i < history->steps.count && is_ok; i++) {
        if (!history_step_is_shown(history, view, &history->steps.items[i])) continue;
        steps++;
        is_ok = put_step(out, history, &history->steps.items[i], error);
    }
    if (!steps) put_rest(out, history, view);
    put_open(out, history, view);
    fputs("</body></html>\n", out);
    return is_ok;
}
