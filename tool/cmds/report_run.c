// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_run.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "tool/answer/forms.h"
#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/report_summary.h"
#include "tool/model/combined.h"
#include "tool/query/languages.h"
#include "tool/query/subject.h"
#include "tool/query/unwrapped.h"
#include "tool/render/chart.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/report_json.h"
#include "tool/render/run_screen.h"
#include "tool/render/summary.h"

#define RUN_SCHEMA "cairn.run/1"
enum { LINE_INDENT = 2, SUMMARY_ROWS = 8, REPORT_ROWS = 40, TEXT_BYTES = 4 * RUN_TEXT_MAX };

bool report_run_path(const struct run *run, const struct run_row *row, char path[PATH_MAX]) {
    int length = snprintf(path, PATH_MAX, "%s/%s", run->directory, row->file);
    return *row->file && length < PATH_MAX;
}

static void add_copies(struct run_screen *screen, const struct recording *recording) {
    if (!recording->header.forked_from) return;
    const struct inherited inherited = inherited_of(recording);
    screen->fork_count += inherited.blocks != 0;
    inherited_add(&screen->copies, &inherited);
}

// Adds what a recording says to the sums of the screen.
static bool measure_row(const struct run *run, const struct run_row *row, struct run_screen *screen,
                        struct combined *combined) {
    char path[PATH_MAX];
    struct recording recording;
    if (!report_run_path(run, row, path) || !recording_open(path, &recording, NULL)) {
        screen->trust.bad_files += *row->file != 0 && !*row->problem;
        screen->trust.lost_elsewhere += row->figures.lost;
        return combined_add_row(combined, row);
    }
    trust_sums_add(&screen->trust, &recording);
    add_copies(screen, &recording);
    bool is_ok = combined_add(combined, &recording);
    recording_close(&recording);
    return is_ok;
}

bool report_run_measure(const struct run *run, struct run_screen *screen, struct error *error) {
    struct combined combined = {0};
    bool is_ok = true;
    if (!run->rows.count && run->inner_count)
        return error_set(
            error, "%s: no recording in it, but %s; the last by name: cairn report %s/%s",
            run->directory, units_counted((int64_t)run->inner_count, "run", "runs").text,
            run->directory, run->inner);
    if (!run->rows.count) return error_set(error, "%s: no process in it", run->directory);
    screen->run = run;
    screen->sums = run_sum(run);
    screen->trust.bad_files = run->bad_files;
    screen->trust.bad_lines = run->bad_lines;
    screen->trust.lost_files = run->lost_files;
    for (size_t i = 0; i < run->rows.count && is_ok; i++)
        is_ok = measure_row(run, &run->rows.items[i], screen, &combined);
    screen->combined = combined_find(&combined);
    combined_free(&combined);
    return is_ok || error_set(error, "no memory for the timelines");
}

static uint64_t value_of(const struct run_row *row, enum measure by) {
    const struct figures *figures = &row->figures;
    switch (by) {
    case MEASURE_EXIT:
    case MEASURE_EXIT_BLOCKS:
        // what a program held when it became another one is no leak of anybody's
        if (row->stop_reason == CAIRN_STOP_EXEC) return 0;
        return figures->exit_bytes > 0 ? (uint64_t)figures->exit_bytes : 0;
    case MEASURE_ALLOCATED:
        return figures->allocated_bytes;
    case MEASURE_CALLS:
    case MEASURE_TEMPORARY:
    case MEASURE_SHORT:
    case MEASURE_SLACK:
    case MEASURE_ALIGNMENT:
        return figures->allocations;
    default:
        return figures->peak_bytes;
    }
}

// The process with the most of what is asked for, among those with a recording; NULL: there is
// none.
static const struct run_row *find_largest(const struct run *run, enum measure by) {
    const struct run_row *largest = NULL;
    for (size_t i = 0; i < run->rows.count; i++) {
        const struct run_row *row = &run->rows.items[i];
        if (!*row->file) continue;
        if (!largest || value_of(row, by) > value_of(largest, by)) largest = row;
    }
    return largest;
}

static void print_process_heading(const struct terminal *terminal, const char *name,
                                  enum measure by) {
    static const char *const words[] = {
        [MEASURE_PEAK] = "the highest peak",        [MEASURE_EXIT] = "the most at its end",
        [MEASURE_ALLOCATED] = "the most allocated", [MEASURE_CALLS] = "the most calls",
        [MEASURE_PEAK_BLOCKS] = "the highest peak", [MEASURE_EXIT_BLOCKS] = "the most at its end",
        [MEASURE_TEMPORARY] = "the most calls",     [MEASURE_SLACK] = "the most calls",
        [MEASURE_SHORT] = "the most calls",         [MEASURE_ALIGNMENT] = "the most calls",
        [MEASURE_OVERRUNS] = "the highest peak",    [MEASURE_AT] = "the highest peak",
        [MEASURE_AT_BLOCKS] = "the highest peak"};
    terminal_indent(terminal, LINE_INDENT);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    terminal_print(terminal, STYLE_DIM, ", with %s\n", words[by]);
}

// The process whose call sites are shown below the table.
struct largest {
    const struct run_row *row;  // NULL: no process has a recording
    struct opened opened;
    struct frame_names names;
    char name[TEXT_BYTES + 16];  // and its pid
    bool is_open;
};

static bool open_largest(const struct run *run, const struct view_options *view,
                         struct largest *largest, struct error *error) {
    char path[PATH_MAX], name[TEXT_BYTES];
    struct opened *opened = &largest->opened;
    *largest = (struct largest){.row = find_largest(run, view->by)};
    if (!largest->row || !report_run_path(run, largest->row, path)) return true;
    text_escape(name, sizeof name, largest->row->name);
    snprintf(largest->name, sizeof largest->name, "%s %" PRIu32, name, largest->row->pid);
    if (!opened_open(path, opened, error)) return false;
    largest->is_open = true;
    if (!report_want_way(opened, error) || !report_resolve_places(opened, view->by, error))
        return false;
    largest->names = names_frames(opened->names);
    return true;
}

static void close_largest(struct largest *largest) {
    if (largest->is_open) opened_close(&largest->opened);
}

static struct summary summary_of(const struct largest *largest, const struct view_options *view) {
    return (struct summary){.profile = &largest->opened.profile,
                            .names = &largest->names,
                            .process = largest->name,
                            .view = view};
}

static bool print_largest(const struct terminal *terminal, const struct largest *largest,
                          const struct view_options *view, struct error *error) {
    const struct summary summary = summary_of(largest, view);
    if (!largest->is_open) return true;
    print_process_heading(terminal, largest->name, view->by);
    trust_print(terminal, summary.profile, summary.names);
    if (!summary_print_list(terminal, &summary, error)) return false;
    languages_print(terminal, &largest->opened, LINE_INDENT);
    return true;
}

// Functions of --wrap that no process has seen; the first recording that can be read tells whether
// there are any to look for.
static bool print_unwrapped(const struct terminal *terminal, const struct run *run,
                            struct error *error) {
    struct unwrapped unwrapped = {0};
    bool is_ok = true, is_first = true;
    for (size_t i = 0; is_ok && i < run->rows.count; i++) {
        char path[PATH_MAX];
        struct recording recording;
        if (!report_run_path(run, &run->rows.items[i], path) ||
            !recording_open(path, &recording, NULL))
            continue;
        is_ok = unwrapped_add(&unwrapped, &recording);
        recording_close(&recording);
        if (is_first && !unwrapped.functions.count) break;
        is_first = false;
    }
    if (is_ok) unwrapped_print(terminal, &unwrapped, LINE_INDENT);
    unwrapped_free(&unwrapped);
    return is_ok || error_set(error, "no memory for the functions of --wrap");
}

// Prints figures and table; `largest` may be NULL.
static bool print_screen(const struct terminal *terminal, const struct run *run,
                         const struct view_options *view, const struct largest *largest,
                         struct run_screen *screen, struct error *error) {
    screen->is_plain_number = view->is_plain_number;
    if (!report_run_measure(run, screen, error)) return false;
    run_screen_print_ending(terminal, screen);
    if (largest && largest->is_open) {
        const struct summary summary = summary_of(largest, view);
        if (!summary_print_first(terminal, &summary, error)) return false;
    }
    run_screen_print_facts(terminal, screen);
    if (!print_unwrapped(terminal, run, error)) return false;
    run_screen_print_table(terminal, screen);
    return true;
}

bool report_run_has_main(const struct run *run) {
    return run->rows.count && run->first == 0 && *run->rows.items[0].file;
}

// Writes the commands to go on with. A pid may have had several images; then the recording's name
// tells which one is meant. The newest run, which was just made, needs no name.
static void next_commands(const struct run *run, const struct run_row *row, bool is_newest,
                          char *out, size_t size) {
    const char *blank = is_newest ? "" : " ";
    char word[RUN_TEXT_MAX], path[PATH_MAX] = "", file[2 * RUN_TEXT_MAX];
    size_t index;
    snprintf(word, sizeof word, "%" PRIu32, row->pid);
    if (!run_find(run, word, &index, NULL)) snprintf(word, sizeof word, "%s", row->file);
    if (!is_newest) text_quote(path, sizeof path, run->directory);
    text_quote(file, sizeof file, word);
    if (report_run_has_main(run) && row == &run->rows.items[0])
        snprintf(out, size, "cairn report --view tree%s%s", blank, path);
    else
        snprintf(out, size, "cairn report%s%s --process %s", blank, path, file);
}

static bool print_run(const struct terminal *terminal, const struct run *run,
                      const struct view_options *view, const struct largest *largest,
                      bool has_prefix, struct error *error) {
    struct run_screen screen = {.top = SUMMARY_ROWS, .has_prefix = has_prefix};
    const bool is_newest = has_prefix && !strchr(run->directory, '/');
    char next[2 * PATH_MAX];
    if (!print_screen(terminal, run, view, largest, &screen, error) ||
        !print_largest(terminal, largest, view, error))
        return false;
    next_commands(run, largest->row ? largest->row : &run->rows.items[0], is_newest, next,
                  sizeof next);
    summary_print_path(terminal, run->directory, screen.sums.bytes_of_files, next);
    return true;
}

bool report_run_summary(FILE *out, const struct run *run, const struct view_options *view,
                        bool has_prefix, struct error *error) {
    const struct terminal terminal = terminal_of(out);
    struct error unread = {""};
    struct largest largest;
    bool is_read = open_largest(run, view, &largest, &unread);
    bool is_ok = print_run(&terminal, run, view, &largest, has_prefix, error);
    close_largest(&largest);
    return is_ok && (is_read || error_set(error, "%s", unread.text));
}

bool report_run_print_head(FILE *out, const struct run *run, const struct view_options *view,
                           struct error *error) {
    struct run_screen screen = {.top = REPORT_ROWS};
    const struct terminal terminal = terminal_of(out);
    if (!print_screen(&terminal, run, view, NULL, &screen, error)) return false;
    summary_print_path(&terminal, run->directory, screen.sums.bytes_of_files, NULL);
    fputc('\n', out);
    return true;
}

bool report_run_context(FILE *out, const struct run *run, const struct view_options *view,
                        const char *what, struct error *error) {
    struct run_screen screen = {.is_plain_number = view->is_plain_number};
    struct terminal terminal = terminal_of(out);
    if (!report_run_measure(run, &screen, error)) return false;
    run_screen_print_context(&terminal, &screen, what);
    return true;
}

bool report_run_timeline(FILE *out, const struct run *run, const struct view_options *view,
                         struct error *error) {
    struct combined combined = {0};
    struct run_screen unused = {0};
    struct terminal terminal = terminal_of(out);
    bool is_ok = true;
    for (size_t i = 0; i < run->rows.count && is_ok; i++)
        is_ok = measure_row(run, &run->rows.items[i], &unused, &combined) ||
                error_set(error, "no memory for the timelines");
    is_ok = is_ok && chart_print_combined(&terminal, &combined, view, error);
    combined_free(&combined);
    return is_ok;
}

bool report_run_table(FILE *out, const struct run *run, const struct view_options *view,
                      struct error *error) {
    struct run_screen screen = {.top = 0};
    const struct terminal terminal = terminal_of(out);
    return print_screen(&terminal, run, view, NULL, &screen, error);
}

static bool put_process(struct json *json, const struct run *run, const struct run_row *row,
                        report_put_fn *put, const void *context, struct combined *combined,
                        struct error *error) {
    char path[PATH_MAX];
    struct opened opened;
    if (!report_run_path(run, row, path) || !opened_open(path, &opened, NULL)) {
        report_json_put_row(json, row);
        return combined_add_row(combined, row) || error_set(error, "no memory for the timelines");
    }
    bool is_ok = put(json, row->file, &opened, context, error);
    if (is_ok && !combined_add(combined, &opened.recording))
        is_ok = error_set(error, "no memory for the timelines");
    opened_close(&opened);
    return is_ok;
}

bool report_run_json(FILE *out, const struct run *run, report_put_fn *put, const void *context,
                     struct error *error) {
    struct combined combined = {0};
    struct run_screen screen = {0};
    struct json json;
    bool is_ok = true;
    if (!report_run_measure(run, &screen, error)) return false;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", RUN_SCHEMA);
    report_json_put_run_trust(&json, run, &screen.trust);
    json_open_array(&json, "processes");
    for (size_t i = 0; i < run->rows.count && is_ok; i++)
        is_ok = put_process(&json, run, &run->rows.items[i], put, context, &combined, error);
    json_close(&json);
    struct combined_peak peak = combined_find(&combined);
    combined_free(&combined);
    json_open_object(&json, "combined_peak");
    json_put_uint(&json, "low_bytes", peak.low_bytes);
    json_put_uint(&json, "high_bytes", peak.high_bytes);
    json_put_uint(&json, "inherited_bytes", peak.inherited_bytes);
    if (peak.pss_bytes)
        json_put_uint(&json, "pss_bytes", peak.pss_bytes);
    else
        json_put_null(&json, "pss_bytes");
    if (peak.estimate.samples) {
        json_put_int(&json, "interval_bytes", estimate_bytes_interval(&peak.estimate));
        json_put_int(&json, "samples", estimate_samples(&peak.estimate));
    }
    json_close(&json);
    json_close(&json);
    return is_ok;
}

// The view `overruns` of a run: blocks that were written past are those of one process each, with
// its own addresses and times, and are not added up.

static bool print_overruns_of(const struct terminal *terminal, const struct run_row *row,
                              struct opened *opened, const struct view_options *view,
                              struct error *error) {
    char name[4 * RUN_TEXT_MAX];
    text_escape(name, sizeof name, row->name);
    names_want_overruns(opened->names);
    if (!names_resolve(opened->names, error)) return false;
    struct frame_names names = names_frames(opened->names);
    terminal_print(terminal, STYLE_NAME, "\n%s %" PRIu32 ": ", name, row->pid);
    struct answer answer;
    if (!overruns_answer(&answer, &opened->profile, &names, view, error)) return false;
    bool is_ok = answer_print_text(terminal, &answer, error);
    answer_close(&answer);
    return is_ok;
}

bool report_run_overruns(FILE *out, const struct run *run, const struct view_options *view,
                         struct error *error) {
    struct terminal terminal = terminal_of(out);
    size_t guarded_count = 0, overrun_count = 0;
    bool is_ok = true;
    for (size_t i = 0; i < run->rows.count && is_ok; i++) {
        const struct run_row *row = &run->rows.items[i];
        char path[PATH_MAX];
        struct opened opened;
        if (!report_run_path(run, row, path) || !opened_open(path, &opened, NULL)) continue;
        const struct cairn_guard *guard = &opened.profile.overruns.guard;
        guarded_count += guard->band_bytes != 0;
        overrun_count += guard->overrun_blocks != 0;
        if (guard->overrun_blocks) is_ok = print_overruns_of(&terminal, row, &opened, view, error);
        opened_close(&opened);
    }
    if (is_ok && !overrun_count)
        terminal_print(&terminal, STYLE_DIM, "\n%s\n",
                       guarded_count ? "no block of any process was written past"
                                     : "the blocks had no guard bands (cairn run --guard)");
    return is_ok;
}
