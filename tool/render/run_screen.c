// SPDX-License-Identifier: Apache-2.0
#include "tool/render/run_screen.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/measure.h"
#include "tool/render/columns.h"
#include "tool/render/interval.h"

enum {
    INDENT = 2,
    KEY_COLUMNS = 15,
    SIZE_COLUMNS = 9,
    PLAIN_SIZE_COLUMNS = 14,
    CALLS_COLUMNS = 13,
    ENDING_COLUMNS = 9,
    NAME_COLUMNS_MIN = 16,
    FACTS_COLUMN = INDENT + KEY_COLUMNS,
    TEXT_BYTES = 4 * RUN_TEXT_MAX,
};

// Figures of one line of the table.
struct line {
    struct measured peak, exit;
    uint64_t allocated_bytes, allocations;
    bool has_peak, is_sampled, has_forks;
};

static struct unit_text size_of(const struct run_screen *screen, int64_t bytes) {
    return units_size_as(bytes, screen->is_plain_number);
}

// " ± 1.2 MiB (62 samples)" behind an estimate.
static void put_interval(const struct terminal *terminal, const struct run_screen *screen,
                         struct measured measured) {
    fprintf(terminal->out, "%s%s", interval_amount(measured, true, screen->is_plain_number).text,
            interval_samples(measured).text);
}

static void print_key(const struct terminal *terminal, const char *key) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, key);
}

// Prints the head of a directory into which somebody put recordings.
static void print_collection(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run *run = screen->run;
    fprintf(terminal->out, "%s%s of %s that were started apart: sums are of all of them\n",
            screen->has_prefix ? "cairn: " : "",
            units_counted((int64_t)run->rows.count, "recording", "recordings").text,
            units_counted((int64_t)run->root_count, "program", "programs").text);
}

void run_screen_print_ending(const struct terminal *terminal, const struct run_screen *screen) {
    if (!screen->run->has_index && screen->run->root_count > 1) {
        print_collection(terminal, screen);
        return;
    }
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
    fprintf(terminal->out, ", %s recorded\n",
            units_counted((int64_t)screen->run->rows.count, "process", "processes").text);
}

static void print_combined(const struct terminal *terminal, const struct run_screen *screen) {
    const struct combined_peak *peak = &screen->combined;
    const struct measured highest = measured_bytes((int64_t)peak->high_bytes, &peak->estimate);
    const struct measured lowest = measured_bytes((int64_t)peak->low_bytes, &peak->estimate);
    struct unit_text low = size_of(screen, measured_shown(lowest));
    struct unit_text high = size_of(screen, measured_shown(highest));
    struct measured alone = measure_figures(MEASURE_PEAK, &screen->run->rows.items[0].figures);
    print_key(terminal, "combined peak");
    if (strcmp(low.text, high.text) != 0)
        terminal_print(terminal, STYLE_STRONG, "%s to %s", low.text, high.text);
    else
        terminal_print(terminal, STYLE_STRONG, "%s", high.text);
    put_interval(terminal, screen, highest);
    if (measured_interval(highest)) {
        fputc('\n', terminal->out);
        print_key(terminal, "largest alone");
    } else {
        terminal_print(terminal, STYLE_DIM, "     largest alone ");
    }
    fputs(size_of(screen, measured_shown(alone)).text, terminal->out);
    put_interval(terminal, screen, alone);
    fputc('\n', terminal->out);
}

// Prints the highest sum of PSS, and of how many processes it is: others were too short to be
// looked at. It is behind `used` columns of a line, or below where it does not fit.
static void print_pss(const struct terminal *terminal, const struct run_screen *screen,
                      size_t used) {
    const struct combined_peak *peak = &screen->combined;
    const size_t all = screen->run->rows.count;
    char whose[TEXT_BYTES] = "of all", text[2 * TEXT_BYTES];
    if (peak->pss_processes < all)
        snprintf(whose, sizeof whose, "of %s of %s", units_count((int64_t)peak->pss_processes).text,
                 units_counted((int64_t)all, "process", "processes").text);
    snprintf(text, sizeof text, "     PSS %s at least %s", whose,
             size_of(screen, (int64_t)peak->pss_bytes).text);
    const bool has_room = used + text_columns(text) <= terminal->columns;
    if (!has_room) fputc('\n', terminal->out);
    if (!has_room) print_key(terminal, "");
    terminal_print(terminal, STYLE_DIM, "%s", text + (has_room ? 0 : strspn(text, " ")));
}

// Prints the most that one process was seen to have resident (it may have been more between two
// looks), and the sum of PSS. Pages that processes share are in each of them, in that sum once.
static void print_resident(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run_row *most = &screen->run->rows.items[0];
    char name[TEXT_BYTES], text[2 * TEXT_BYTES];
    for (size_t i = 1; i < screen->run->rows.count; i++) {
        const struct run_row *row = &screen->run->rows.items[i];
        if (row->rss_peak_bytes > most->rss_peak_bytes) most = row;
    }
    if (!most->rss_peak_bytes) return;
    text_escape(name, sizeof name, most->name);
    print_key(terminal, "largest RSS");
    snprintf(text, sizeof text, "about %s (%s %" PRIu32 ")",
             size_of(screen, (int64_t)most->rss_peak_bytes).text, name, most->pid);
    fputs(text, terminal->out);
    if (screen->combined.pss_bytes && !screen->fork_count)
        print_pss(terminal, screen, FACTS_COLUMN + text_columns(text));
    fputc('\n', terminal->out);
}

// Copies of the parent's blocks count for each fork that has them, though pages that nobody wrote
// to are there once: what the processes really share shows in their proportional set sizes.
static void print_copies(const struct terminal *terminal, const struct run_screen *screen) {
    const struct combined_peak *peak = &screen->combined;
    if (!screen->fork_count || !peak->inherited_bytes) return;
    print_key(terminal, "inherited");
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "up to %s of it, copies in %s",
             size_of(screen, (int64_t)peak->inherited_bytes).text,
             units_counted((int64_t)screen->fork_count, "fork", "forks").text);
    fputs(text, terminal->out);
    if (peak->pss_bytes) print_pss(terminal, screen, FACTS_COLUMN + text_columns(text));
    fputc('\n', terminal->out);
}

// What processes held in the end, which of some is that of the recording only.
static const char *end_key(const struct run_screen *screen) {
    const struct run_row *first = &screen->run->rows.items[screen->run->first];
    return first->stop_reason == CAIRN_STOP_LEFT ? "at detach" : "at exit";
}

static void print_left(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run_sums *sums = &screen->sums;
    const struct figures figures = {.exit_bytes = sums->exit_bytes,
                                    .exit_blocks = sums->exit_blocks,
                                    .exit_estimate = sums->exit_estimate};
    struct measured left = measure_figures(MEASURE_EXIT, &figures);
    struct measured blocks = measure_figures(MEASURE_EXIT_BLOCKS, &figures);
    print_key(terminal, end_key(screen));
    fprintf(terminal->out, "%s%s in %s%s %s%s", size_of(screen, measured_shown(left)).text,
            interval_amount(left, true, screen->is_plain_number).text,
            units_count(measured_shown(blocks)).text, interval_amount(blocks, false, false).text,
            units_noun(blocks.value, "block", "blocks"), interval_samples(left).text);
    if (screen->copies.exit_bytes > 0)
        fprintf(terminal->out, ", of it %s inherited copies",
                size_of(screen, screen->copies.exit_bytes).text);
    fputc('\n', terminal->out);
}

// Processes whose recordings could not be written, by name as far as they fit into some lines.
static void print_lost(const struct terminal *terminal, const struct run_screen *screen) {
    enum { NAMED_MAX = 64 };
    struct parts line = {.terminal = terminal};
    const char *because = "";
    size_t named = 0;
    if (!screen->trust.lost_files) return;
    for (size_t i = 0; i < screen->run->rows.count && named < NAMED_MAX; i++) {
        const struct run_row *row = &screen->run->rows.items[i];
        char name[TEXT_BYTES];
        if (!*row->problem) continue;
        because = row->problem;
        text_escape(name, sizeof name, row->name);
        parts_add(&line, STYLE_WARNING, "%s%s %" PRIu32, named++ ? "" : "lost: ", name, row->pid);
    }
    if (screen->trust.lost_files > named)
        parts_add(&line, STYLE_WARNING, "and %s more",
                  units_count((int64_t)(screen->trust.lost_files - named)).text);
    char reason[4 * RUN_PROBLEM_MAX];
    text_escape(reason, sizeof reason, because);
    parts_add(&line, STYLE_WARNING, "could not be written: %s", reason);
    parts_end(&line);
}

static void print_inner(const struct terminal *terminal, const struct run *run) {
    char text[4 * PATH_MAX], safe[4 * PATH_MAX];
    if (!run->inner_count) return;
    snprintf(text, sizeof text, "%s/%s", run->directory, run->inner);
    text_escape(safe, sizeof safe, text);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_WARNING, "%s in the same directory, not read: cairn report %s\n",
                   units_counted((int64_t)run->inner_count, "other run is", "other runs are").text,
                   safe);
}

void run_screen_print_facts(const struct terminal *terminal, const struct run_screen *screen) {
    const struct run_sums *sums = &screen->sums;
    print_combined(terminal, screen);
    print_resident(terminal, screen);
    print_copies(terminal, screen);
    print_key(terminal, "allocated");
    fprintf(terminal->out, "%s in %s\n", size_of(screen, (int64_t)sums->allocated_bytes).text,
            units_counted((int64_t)sums->allocations, "call", "calls").text);
    print_left(terminal, screen);
    trust_sums_print(terminal, &screen->trust);
    print_lost(terminal, screen);
    print_inner(terminal, screen->run);
}

void run_screen_print_context(const struct terminal *terminal, const struct run_screen *screen,
                              const char *what) {
    const struct trust_sums *trust = &screen->trust;
    struct parts line = {.terminal = terminal};
    char name[FRAME_TEXT_BYTES];
    text_escape(name, sizeof name, screen->run->directory);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    line.used = text_columns(name);
    parts_add(&line, STYLE_PLAIN, "combined peak %s",
              size_of(screen, (int64_t)screen->combined.high_bytes).text);
    if (!trust_sums_are_whole(trust))
        parts_add(&line, STYLE_WARNING, "not exact: --summary");
    else
        parts_add(&line, STYLE_PLAIN, trust->sampled_count ? "sampled" : "exact");
    parts_add(&line, STYLE_PLAIN, "%s", what);
    parts_end(&line);
}

enum { LINE_COLUMNS = 5 };

static struct columns line_columns(const struct run_screen *screen, struct column *items) {
    const size_t size = screen->is_plain_number ? PLAIN_SIZE_COLUMNS : SIZE_COLUMNS;
    const struct column columns[LINE_COLUMNS] = {{"peak heap", size, STYLE_STRONG, false},
                                                 {"allocated", size, STYLE_PLAIN, false},
                                                 {"calls", CALLS_COLUMNS, STYLE_PLAIN, false},
                                                 {end_key(screen), size, STYLE_PLAIN, false},
                                                 {"ended", ENDING_COLUMNS, STYLE_PLAIN, true}};
    memcpy(items, columns, sizeof columns);
    return (struct columns){items, LINE_COLUMNS, INDENT, 2};
}

static size_t name_room(const struct terminal *terminal, const struct run_screen *screen) {
    struct column items[LINE_COLUMNS];
    const struct columns columns = line_columns(screen, items);
    size_t used = columns_width(&columns) + 2;
    bool has_room = terminal->columns > used + NAME_COLUMNS_MIN;
    return has_room ? terminal->columns - used : NAME_COLUMNS_MIN;
}

// Below a line's figures, named after their columns.
static void print_estimates(const struct terminal *terminal, const struct run_screen *screen,
                            const struct line *line) {
    struct parts parts = {.terminal = terminal};
    if (!line->is_sampled) return;
    if (line->has_peak)
        interval_add_part(&parts, "peak heap", line->peak, true, screen->is_plain_number);
    interval_add_part(&parts, end_key(screen), line->exit, true, screen->is_plain_number);
    parts_end(&parts);
}

static void print_figures(const struct terminal *terminal, const struct run_screen *screen,
                          const struct line *line, const char *ending) {
    struct column items[LINE_COLUMNS];
    const struct columns columns = line_columns(screen, items);
    struct unit_text texts[LINE_COLUMNS] = {size_of(screen, measured_shown(line->peak)),
                                            size_of(screen, (int64_t)line->allocated_bytes),
                                            units_count((int64_t)line->allocations),
                                            size_of(screen, measured_shown(line->exit))};
    if (!line->has_peak) *texts[0].text = 0;
    snprintf(texts[LINE_COLUMNS - 1].text, sizeof texts->text, "%s", ending);
    columns_print(terminal, &columns, texts);
    terminal_indent(terminal, 2);
}

static void print_row(const struct terminal *terminal, const struct run_screen *screen,
                      const struct run_row *row) {
    const struct figures *figures = &row->figures;
    const struct line line = {.peak = measure_figures(MEASURE_PEAK, figures),
                              .exit = measure_figures(MEASURE_EXIT, figures),
                              .allocated_bytes = figures->allocated_bytes,
                              .allocations = figures->allocations,
                              .has_peak = true,
                              .is_sampled = figures->is_sampled};
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
    print_estimates(terminal, screen, &line);
}

static void line_add(struct line *line, const struct figures *figures) {
    struct measured peak = measure_figures(MEASURE_PEAK, figures);
    line->allocated_bytes += figures->allocated_bytes;
    line->allocations += figures->allocations;
    line->is_sampled |= figures->is_sampled;
    struct measured left = measure_figures(MEASURE_EXIT, figures);
    line->has_forks |= figures->inherited_blocks != 0;
    double related =
        estimate_related(line->exit.estimate.bytes_variance, left.estimate.bytes_variance);
    estimate_forget_limits(&left.estimate);
    measured_add(&line->exit, left);
    if (line->has_forks) line->exit.estimate.bytes_variance = related;
    if (figures->peak_bytes > (uint64_t)line->peak.value) line->peak = peak;
}

// Prints processes that are one line together; the peak shown is the highest of theirs.
static void print_folded(const struct terminal *terminal, const struct run_screen *screen,
                         const struct line *line, size_t count, const char *kind) {
    if (!count) return;
    print_figures(terminal, screen, line, "");
    terminal_print(terminal, STYLE_DIM, "%s %s %s\n", units_count((int64_t)count).text, kind,
                   count == 1 ? "process" : "processes");
    print_estimates(terminal, screen, line);
}

static void print_heading(const struct terminal *terminal, const struct run_screen *screen) {
    struct column items[LINE_COLUMNS];
    const struct columns columns = line_columns(screen, items);
    columns_print_heads(terminal, &columns);
    terminal_print(terminal, STYLE_DIM, "  process\n");
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
    print_folded(terminal, screen, &further, further_count, "further");
    print_folded(terminal, screen, &small, small_count, "small");
    print_figures(terminal, screen, &sum, "");
    terminal_print(terminal, STYLE_DIM, "all %s\n", units_count((int64_t)run->rows.count).text);
    print_estimates(terminal, screen, &sum);
    if (!further_count) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "each process: --view processes\n");
}
