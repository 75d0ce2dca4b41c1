// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_run.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "tool/answer/forms.h"
#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/combined.h"
#include "tool/query/languages.h"
#include "tool/query/name_options.h"
#include "tool/query/subject.h"
#include "tool/query/unwrapped.h"
#include "tool/render/chart.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/report_json.h"
#include "tool/render/run_screen.h"
#include "tool/render/site.h"
#include "tool/render/summary.h"
#include "tool/render/way.h"
#include "tool/watch/program.h"

enum { LINE_INDENT = 2 };

bool report_resolve_places(struct opened *opened, enum measure by, struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (measure_stack(by, &profile->stacks[i]).value > 0)
            names_want_stack(opened->names, profile->stacks[i].node, SITE_PLACES_MAX);
    return names_resolve(opened->names, error);
}

// Commands to go on with: about the largest finding, else what is left, else what there was. The
// newest recording of the current directory needs no name.
static void next_commands(const char *path, const struct opened *opened,
                          const struct findings *findings, char *out, size_t size) {
    enum { LEFT_SHARE = 4 };
    const struct profile *profile = &opened->profile;
    const char *view = findings ? findings_view(findings) : NULL;
    char word[PATH_MAX] = " ";
    if (strchr(path, '/'))
        text_quote(word + 1, sizeof word - 1, path);
    else
        *word = 0;
    const struct cairn_reachability *lost = &profile->reachability.sums;
    bool is_much_left = profile->exit_bytes > profile->peak.bytes / LEFT_SHARE;
    const struct cairn_header *header = &profile->recording->header;
    bool is_left = profile_lacks_older(profile) && header->stop_reason == CAIRN_STOP_LEFT;
    if (is_left && !profile->peak.bytes)  // nothing was allocated since
        snprintf(out, size, "cairn report %" PRIu32, header->pid);
    else if (lost->direct_blocks)
        snprintf(out, size, "cairn leaks --unreachable%s", word);
    else if (view)
        snprintf(out, size, "cairn report --view %s%s", view, word);
    else if (is_much_left)
        snprintf(out, size, "cairn leaks%s", word);
    else
        snprintf(out, size, "cairn report --view tree%s", word);
}

// Why a profile is empty, as far as the program's file tells.
static const char *empty_reason(const struct opened *opened, struct program *program, char *text,
                                size_t size) {
    const char *path = opened->recording.header.executable;
    int status;
    if (!profile_is_empty(&opened->profile) || !*path) return NULL;
    if (!program_find(path, program, &status, NULL)) return NULL;
    if (program->obstacle) return program->obstacle;
    if (!program->own_allocator || program->is_static) return NULL;  // of those it is led to us
    snprintf(text, size, "the program is linked with %s, whose calls cannot be seen",
             program->own_allocator);
    return text;
}

static bool want_way(struct opened *opened, struct error *error) {
    struct way_nodes way;
    if (!way_nodes_find(&way, &opened->profile))
        return error_set(error, "no memory for sums by function");
    for (size_t i = 0; i < way.nodes.count; i++)
        names_want_stack(opened->names, way.nodes.items[i], 1);
    way_nodes_free(&way);
    return true;
}

bool report_find_findings(struct opened *opened, struct findings *findings, struct error *error) {
    if (!findings_find(findings, &opened->profile, error)) return false;
    uint32_t nodes[FINDINGS_NODES_MAX];
    size_t count = findings_nodes(findings, nodes);
    for (size_t i = 0; i < count; i++) names_want_stack(opened->names, nodes[i], SITE_PLACES_MAX);
    return want_way(opened, error);
}

// Prints what `wanted` asks for; the parts that come from the recording are filled in here.
static bool print_summary(FILE *out, struct opened *opened, const char *path,
                          const struct summary *wanted, struct error *error) {
    enum { REASON_BYTES = 256 };
    struct terminal terminal = terminal_of(out);
    struct program program;
    char reason[REASON_BYTES], next[PATH_MAX + 32];
    struct findings findings;
    if (wanted->has_list && (!report_find_findings(opened, &findings, error) ||
                             !report_resolve_places(opened, wanted->view->by, error)))
        return false;
    struct frame_names names = names_frames(opened->names);
    struct summary summary = *wanted;
    if (wanted->has_list && !findings_settle(&findings, &opened->profile, &names, error))
        return false;
    if (wanted->names) names.of_place = wanted->names->of_place;
    if (wanted->names) names.context = wanted->names->context;
    summary.path = path;
    summary.profile = &opened->profile;
    summary.names = &names;
    summary.findings = wanted->has_list ? &findings : NULL;
    summary.is_alive = opened_is_alive(opened);
    next_commands(path, opened, summary.findings, next, sizeof next);
    if (summary.has_prefix && !profile_is_empty(&opened->profile)) summary.next = next;
    if (!summary.empty_reason)
        summary.empty_reason = empty_reason(opened, &program, reason, sizeof reason);
    if (!summary_print_facts(&terminal, &summary, error)) return false;
    if (!profile_is_empty(&opened->profile)) languages_print(&terminal, opened, LINE_INDENT);
    if (summary.has_prefix && !unwrapped_print_of(&terminal, &opened->recording, LINE_INDENT))
        return error_set(error, "no memory for the functions of --wrap");
    summary_print_file(&terminal, &summary);
    return true;
}

bool report_summary_of(FILE *out, struct opened *opened, const char *path, bool has_list,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error) {
    struct summary summary = {.names = names, .view = view, .has_list = has_list};
    return print_summary(out, opened, path, &summary, error);
}

void report_context_of(FILE *out, const struct opened *opened, const char *path, const char *of_run,
                       const struct view_options *view) {
    struct terminal terminal = terminal_of(out);
    const struct summary summary = {.profile = &opened->profile, .view = view, .path = path};
    summary_print_context(&terminal, &summary, of_run, opened->at_text);
}

bool report_summary_print(FILE *out, struct opened *opened, const char *path,
                          const struct summary_options *options, const struct view_options *view,
                          struct error *error) {
    const struct summary summary = {
        .view = view, .empty_reason = options->empty_reason, .has_prefix = true, .has_list = true};
    return print_summary(out, opened, path, &summary, error);
}

#define RUN_SCHEMA "cairn.run/1"
enum { SUMMARY_ROWS = 8, REPORT_ROWS = 40, TEXT_BYTES = 4 * RUN_TEXT_MAX };

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

static void print_process_heading(const struct terminal *terminal, const struct run_row *row,
                                  enum measure by) {
    static const char *const words[] = {
        [MEASURE_PEAK] = "the highest peak",        [MEASURE_EXIT] = "the most at its end",
        [MEASURE_ALLOCATED] = "the most allocated", [MEASURE_CALLS] = "the most calls",
        [MEASURE_PEAK_BLOCKS] = "the highest peak", [MEASURE_EXIT_BLOCKS] = "the most at its end",
        [MEASURE_TEMPORARY] = "the most calls",     [MEASURE_SLACK] = "the most calls",
        [MEASURE_SHORT] = "the most calls",         [MEASURE_ALIGNMENT] = "the most calls",
        [MEASURE_OVERRUNS] = "the highest peak",    [MEASURE_AT] = "the highest peak",
        [MEASURE_AT_BLOCKS] = "the highest peak"};
    char name[TEXT_BYTES];
    text_escape(name, sizeof name, row->name);
    terminal_indent(terminal, 2);
    terminal_print(terminal, STYLE_STRONG, "%s %" PRIu32, name, row->pid);
    terminal_print(terminal, STYLE_DIM, ", with %s\n", words[by]);
}

static bool print_places(FILE *out, struct opened *opened, const void *context,
                         struct error *error) {
    const struct view_options *view = context;
    struct terminal terminal = terminal_of(out);
    if (!want_way(opened, error) || !report_resolve_places(opened, view->by, error)) return false;
    struct frame_names names = names_frames(opened->names);
    const struct summary summary = {.profile = &opened->profile, .names = &names, .view = view};
    if (!summary_print_first(&terminal, &summary, error)) return false;
    trust_print(&terminal, &opened->profile, &names);
    if (!summary_print_list(&terminal, &summary, error)) return false;
    languages_print(&terminal, opened, LINE_INDENT);
    return true;
}

static bool print_largest(FILE *out, const struct run *run, enum measure by,
                          report_process_fn *print, const void *context, struct error *error) {
    const struct run_row *largest = find_largest(run, by);
    struct terminal terminal = terminal_of(out);
    char path[PATH_MAX];
    struct opened opened;
    if (!largest || !report_run_path(run, largest, path)) return true;
    print_process_heading(&terminal, largest, by);
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok = print(out, &opened, context, error);
    opened_close(&opened);
    return is_ok;
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

static bool print_screen(FILE *out, const struct run *run, const struct view_options *view,
                         struct run_screen *screen, struct error *error) {
    struct terminal terminal = terminal_of(out);
    screen->is_plain_number = view->is_plain_number;
    if (!report_run_measure(run, screen, error)) return false;
    run_screen_print_facts(&terminal, screen);
    if (!print_unwrapped(&terminal, run, error)) return false;
    run_screen_print_table(&terminal, screen);
    return true;
}

bool report_run_has_main(const struct run *run) {
    return run->rows.count && run->first == 0 && *run->rows.items[0].file;
}

// The newest recording of the current directory needs no name. A pid may have had several images;
// then the recording's name tells which one is meant.
static void next_commands_of_run(const struct run *run, const struct run_row *row, char *out,
                                 size_t size) {
    bool needs_path = strchr(run->directory, '/') != NULL;
    const char *blank = needs_path ? " " : "";
    char word[RUN_TEXT_MAX], path[PATH_MAX] = "", file[2 * RUN_TEXT_MAX];
    size_t index;
    snprintf(word, sizeof word, "%" PRIu32, row->pid);
    if (!run_find(run, word, &index, NULL)) snprintf(word, sizeof word, "%s", row->file);
    if (needs_path) text_quote(path, sizeof path, run->directory);
    text_quote(file, sizeof file, word);
    if (report_run_has_main(run) && row == &run->rows.items[0])
        snprintf(out, size, "cairn report --view tree%s%s \xc2\xb7 cairn report%s%s", blank, path,
                 blank, path);
    else
        snprintf(out, size, "cairn report%s%s \xc2\xb7 cairn report%s%s --process %s", blank, path,
                 blank, path, file);
}

bool report_run_summary(FILE *out, const struct run *run, const struct view_options *view,
                        struct error *error) {
    struct run_screen screen = {.top = SUMMARY_ROWS, .has_prefix = true};
    struct terminal terminal = terminal_of(out);
    char next[2 * PATH_MAX];
    if (!print_screen(out, run, view, &screen, error) ||
        !print_largest(out, run, view->by, print_places, view, error))
        return false;
    const struct run_row *largest = find_largest(run, view->by);
    next_commands_of_run(run, largest ? largest : &run->rows.items[0], next, sizeof next);
    summary_print_path(&terminal, run->directory, screen.sums.bytes_of_files, next);
    return true;
}

bool report_run_print_head(FILE *out, const struct run *run, const struct view_options *view,
                           struct error *error) {
    struct run_screen screen = {.top = REPORT_ROWS};
    struct terminal terminal = terminal_of(out);
    if (!print_screen(out, run, view, &screen, error)) return false;
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

bool report_run_print(FILE *out, const struct run *run, const struct view_options *view,
                      struct error *error) {
    struct view_options places = *view;  // --top is that of the table then
    places.top = SUMMARY_TOP_DEFAULT;
    return report_run_print_head(out, run, view, error) &&
           print_largest(out, run, view->by, print_places, &places, error);
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
    return print_screen(out, run, view, &screen, error);
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
