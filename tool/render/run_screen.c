// SPDX-License-Identifier: Apache-2.0
#include "tool/render/run_screen.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum {
    INDENT = 2,
    KEY_COLUMNS = 15,
    SIZE_COLUMNS = 9,
    PLAIN_SIZE_COLUMNS = 14,
    CALLS_COLUMNS = 13,
    ENDING_COLUMNS = 9,
    NAME_COLUMNS_MIN = 16,
    TEXT_BYTES = 4 * RUN_TEXT_MAX,
};

// Figures of one line of the table.
struct line {
    uint64_t peak_bytes, allocated_bytes, allocations;
    int64_t exit_bytes;
    bool has_peak;
};

static struct unit_text size_of(const struct run_screen *screen, int64_t bytes) {
    return units_size_as(bytes, screen->is_plain_number);
}

static void print_key(const struct terminal *terminal, const char *key) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, key);
}

static void print_ending(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run_row *first = &screen->run->rows.items[screen->run->first];
    const struct ending ending = {first->state, first->stop_reason, first->has_exit,
                                  first->exit_status, first->exit_signal};
    char name[TEXT_BYTES], text[TEXT_BYTES];
    text_escape(name, sizeof name, first->name);
    ending_text(&ending, false, text, sizeof text);
    bool is_bad = first->has_exit && (first->exit_signal || first->exit_status);
    if (screen->has_prefix) fputs("cairn: ", terminal->out);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    terminal_print(terminal, is_bad ? STYLE_WARNING : STYLE_PLAIN, " %s", text);
    if (first->duration_ns)
        fprintf(terminal->out, " after %s", units_duration(first->duration_ns).text);
    fprintf(terminal->out, ", %s processes recorded\n",
            units_count((int64_t)screen->run->rows.count).text);
}

static void print_combined(const struct terminal *terminal, const struct run_screen *screen) {
    struct unit_text low = size_of(screen, (int64_t)screen->combined_low_bytes);
    struct unit_text high = size_of(screen, (int64_t)screen->combined_high_bytes);
    print_key(terminal, "combined peak");
    if (strcmp(low.text, high.text) != 0)
        terminal_print(terminal, STYLE_STRONG, "%s to %s", low.text, high.text);
    else
        terminal_print(terminal, STYLE_STRONG, "%s", high.text);
    terminal_print(terminal, STYLE_DIM, "     largest alone ");
    fprintf(terminal->out, "%s\n",
            size_of(screen, (int64_t)screen->run->rows.items[0].figures.peak_bytes).text);
}

void run_screen_print_facts(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run_sums *sums = &screen->sums;
    print_ending(terminal, screen);
    print_combined(terminal, screen);
    print_key(terminal, "allocated");
    fprintf(terminal->out, "%s in %s calls\n", size_of(screen, (int64_t)sums->allocated_bytes).text,
            units_count((int64_t)sums->allocations).text);
    print_key(terminal, "at exit");
    fprintf(terminal->out, "%s in %s blocks\n", size_of(screen, sums->exit_bytes).text,
            units_count(sums->exit_blocks).text);
    trust_sums_print(terminal, &screen->trust);
}

static int size_columns(const struct run_screen *screen) {
    return screen->is_plain_number ? PLAIN_SIZE_COLUMNS : SIZE_COLUMNS;
}

static size_t name_room(const struct terminal *terminal, const struct run_screen *screen) {
    size_t used =
        INDENT + 3 * ((size_t)size_columns(screen) + 2) + CALLS_COLUMNS + 2 + ENDING_COLUMNS + 2;
    bool has_room = terminal->columns > used + NAME_COLUMNS_MIN;
    return has_room ? terminal->columns - used : NAME_COLUMNS_MIN;
}

static void print_figures(const struct terminal *terminal, const struct run_screen *screen,
                          const struct line *line, const char *ending) {
    int columns = size_columns(screen);
    struct unit_text peak = size_of(screen, (int64_t)line->peak_bytes);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_STRONG, "%*s", columns, line->has_peak ? peak.text : "");
    fprintf(terminal->out, "  %*s  %*s  %*s  %-*s  ", columns,
            size_of(screen, (int64_t)line->allocated_bytes).text, CALLS_COLUMNS,
            units_count((int64_t)line->allocations).text, columns,
            size_of(screen, line->exit_bytes).text, ENDING_COLUMNS, ending);
}

static void print_row(const struct terminal *terminal, const struct run_screen *screen,
                      const struct run_row *row) {
    const struct figures *figures = &row->figures;
    const struct line line = {figures->peak_bytes, figures->allocated_bytes, figures->allocations,
                              figures->exit_bytes, true};
    const struct ending ending = {row->state, row->stop_reason, row->has_exit, row->exit_status,
                                  row->exit_signal};
    char word[TEXT_BYTES], name[TEXT_BYTES], pid[32];
    ending_word(&ending, word, sizeof word);
    text_escape(name, sizeof name, row->name);
    snprintf(pid, sizeof pid, " %" PRIu32, row->pid);
    text_cut(name, name_room(terminal, screen) - strlen(pid));
    print_figures(terminal, screen, &line, word);
    terminal_print(terminal, STYLE_NAME, "%s", name);
    terminal_print(terminal, STYLE_DIM, "%s\n", pid);
}

static void line_add(struct line *line, const struct figures *figures) {
    line->allocated_bytes += figures->allocated_bytes;
    line->allocations += figures->allocations;
    line->exit_bytes = figures_add(line->exit_bytes, figures->exit_bytes);
    if (figures->peak_bytes > line->peak_bytes) line->peak_bytes = figures->peak_bytes;
}

// Processes that are one line together; the peak shown is the highest of theirs.
static void print_folded(const struct terminal *terminal, const struct run_screen *screen,
                         const struct line *line, size_t count, const char *what) {
    if (!count) return;
    print_figures(terminal, screen, line, "");
    terminal_print(terminal, STYLE_DIM, "%s %s%s\n", units_count((int64_t)count).text, what,
                   count == 1 ? "process" : "processes");
}

static void print_heading(const struct terminal *terminal, const struct run_screen *screen) {
    int columns = size_columns(screen);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%*s  %*s  %*s  %*s  %-*s  %s\n", columns, "peak heap",
                   columns, "allocated", CALLS_COLUMNS, "calls", columns, "at exit", ENDING_COLUMNS,
                   "ended", "process");
}

void run_screen_print_table(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run *run = screen->run;
    const struct run_row *first = &run->rows.items[run->first];
    struct line further = {.has_peak = true}, small = {.has_peak = true}, sum = {0};
    size_t shown = 0, further_count = 0, small_count = 0;
    print_heading(terminal, screen);
    for (size_t i = 0; i < run->rows.count; i++) {
        const struct run_row *row = &run->rows.items[i];
        bool is_folded = screen->top && row != first && figures_is_small(&row->figures);
        bool is_further = !is_folded && row != first && screen->top && shown >= screen->top;
        line_add(&sum, &row->figures);
        if (is_folded) line_add(&small, &row->figures);
        if (is_further) line_add(&further, &row->figures);
        small_count += is_folded;
        further_count += is_further;
        if (is_folded || is_further) continue;
        shown++;
        print_row(terminal, screen, row);
    }
    print_folded(terminal, screen, &further, further_count, "further ");
    print_folded(terminal, screen, &small, small_count, "small ");
    print_figures(terminal, screen, &sum, "");
    terminal_print(terminal, STYLE_DIM, "all %s\n", units_count((int64_t)run->rows.count).text);
}
