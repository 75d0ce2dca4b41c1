// SPDX-License-Identifier: Apache-2.0
// A recording is opened once for the whole process and once for each of its regions, since a
// profile is narrowed to a region for good.
#include "tool/history/take.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/check/offenders.h"
#include "tool/model/run.h"
#include "tool/model/scopes.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"

enum { NAME_BYTES = 512, PLACE_BYTES = PATH_MAX + 16, REGIONS_MAX = 64 };

static const enum measure stack_measures[HISTORY_STACK_MEASURES] = {
    [HISTORY_PEAK] = MEASURE_PEAK,           [HISTORY_EXIT] = MEASURE_EXIT,
    [HISTORY_CALLS] = MEASURE_CALLS,         [HISTORY_BYTES] = MEASURE_ALLOCATED,
    [HISTORY_TEMPORARY] = MEASURE_TEMPORARY,
};

static void row_free(struct taken_row *row) {
    for (size_t i = 0; i < row->sites.count; i++) free(row->sites.items[i].place);
    array_free(&row->sites);
    diff_free(&row->stacks);
    free(row->test);
    free(row->program);
    free(row->region);
}

void take_free(struct taken *taken) {
    for (size_t i = 0; i < taken->rows.count; i++) row_free(&taken->rows.items[i]);
    array_free(&taken->rows);
}

static char *safe_copy(const char *text) {
    char safe[NAME_BYTES];
    text_escape(safe, sizeof safe, text);
    return strdup(safe);
}

static struct taken_row *find(struct taken *taken, const char *test, const char *program,
                              const char *region) {
    for (size_t i = 0; i < taken->rows.count; i++) {
        struct taken_row *row = &taken->rows.items[i];
        if (!strcmp(row->test, test) && !strcmp(row->program, program) &&
            !strcmp(row->region, region))
            return row;
    }
    return NULL;
}

static struct taken_row *find_or_add(struct taken *taken, const char *test, const char *program,
                                     const char *region) {
    struct taken_row made = {.test = safe_copy(test),
                             .program = safe_copy(program),
                             .region = safe_copy(region)},
                     *row = NULL;
    if (made.test && made.program && made.region) {
        row = find(taken, made.test, made.program, made.region);
        if (!row && (row = array_push(&taken->rows))) {
            *row = made;
            diff_start(&row->stacks, HISTORY_STACK_MEASURES, HISTORY_STACK_MEASURES);
            for (size_t i = 0; i < HISTORY_MEASURES; i++)
                row->figures[i].is_known = i < HISTORY_WASTE;
            return row;
        }
    }
    row_free(&made);
    return row;
}

static void add_figure(struct history_figure *figure, int64_t value, int64_t interval,
                       bool is_known) {
    figure->value = figures_add(figure->value, value);
    figure->interval = figures_add(figure->interval, interval);
    figure->is_known = figure->is_known && is_known;
}

static int64_t clamp(uint64_t value) {
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

static unsigned flags_of(const struct profile *profile) {
    size_t threads = 0;
    for (size_t i = 0; i < profile->thread_count; i++)
        threads += 1 + profile->threads[i].folded_count;
    return (threads > 1 ? HISTORY_IS_THREADED : 0) |
           (profile->sampling.is_on ? HISTORY_IS_SAMPLED : 0) |
           (recording_is_whole(profile->recording) ? 0 : HISTORY_IS_INCOMPLETE);
}

static void add_figures(struct taken_row *row, const struct opened *opened, bool has_exit) {
    const struct profile *profile = &opened->profile;
    struct history_figure *figures = row->figures;
    const struct estimate *estimates = profile->estimates;
    bool has_temporary = recording_has_temporary(&opened->recording) && !profile->sampling.is_on;
    int64_t peak_bound = profile->sampling.is_on
                             ? estimate_bytes_interval(&estimates[ESTIMATED_PEAK])
                             : clamp(profile->peak.error_bytes);
    const bool has_frees = profile_has_frees(profile);
    row->process_count++;
    row->flags |= flags_of(profile);
    add_figure(&figures[HISTORY_PEAK], profile->peak.bytes, peak_bound, has_frees);
    add_figure(&figures[HISTORY_EXIT], has_exit ? profile->exit_bytes : 0,
               has_exit ? estimate_bytes_interval(&estimates[ESTIMATED_EXIT]) : 0, has_frees);
    const bool has_calls = profile_has_calls(profile);
    add_figure(&figures[HISTORY_CALLS], clamp(profile->totals.allocations), 0, has_calls);
    add_figure(&figures[HISTORY_BYTES], clamp(profile->totals.allocated_bytes), 0, has_calls);
    add_figure(&figures[HISTORY_TEMPORARY], clamp(profile->totals.temporary), 0, has_temporary);
}

// "src/parser.c:120": the path without the project's own.
static char *place_of(const struct frame *frame, const char *top) {
    char place[PLACE_BYTES], safe[PLACE_BYTES];
    size_t length = top ? strlen(top) : 0;
    const char *path = frame->file;
    if (!path) return NULL;
    if (length && !strncmp(path, top, length) && path[length] == '/') path += length + 1;
    snprintf(place, sizeof place, "%s:%u", path, frame->line);
    text_escape(safe, sizeof safe, place);
    return strdup(safe);
}

// Where among the lines of a stack's key a frame is: recursion is one line there.
static uint32_t line_of(const struct frame_list *frames, const struct frame *wanted) {
    const struct frame *frame, *before = NULL;
    uint32_t line = 0;
    size_t index = 0;
    while ((frame = frame_list_next(frames, &index)) && frame != wanted) {
        if (!before || !frame_is_same_function(frame, before)) line++;
        before = frame;
    }
    return frame == wanted && before && frame_is_same_function(frame, before) && line ? line - 1
                                                                                      : line;
}

// The places of stacks that had none yet.
static bool add_sites(struct taken_row *row, const struct opened *opened,
                      const struct frame_names *names, const uint32_t *rows, const char *top) {
    const struct profile *profile = &opened->profile;
    struct frame_list frames = {0};
    bool is_ok = true;
    while (row->sites.count < row->stacks.rows.count && is_ok) {
        struct taken_site *site = array_push(&row->sites);
        is_ok = site != NULL;
        if (is_ok) *site = (struct taken_site){0};
    }
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        struct taken_site *site = &row->sites.items[rows[i]];
        if (site->place) continue;
        is_ok = frame_list_fill(&frames, profile, names, profile->stacks[i].node, 0);
        const struct frame *own = is_ok ? frame_list_first_own(&frames) : NULL;
        if (!own) continue;
        site->frame = line_of(&frames, own);
        site->place = place_of(own, top);
    }
    frame_list_free(&frames);
    return is_ok;
}

static bool add_measure(struct taken_row *row, enum history_measure measure,
                        const struct opened *opened, uint32_t *rows, struct error *error) {
    const struct view_options view = {.by = stack_measures[measure]};
    const struct frame_names names = names_frames(opened->names);
    return diff_add_every_stack(&row->stacks, measure, &opened->profile, &names, &view, rows,
                                error);
}

// What is left at the end goes last: suppressions take stacks away.
static bool add_process(struct taken_row *row, const struct command_args *args,
                        struct opened *opened, bool has_exit, const char *top,
                        struct error *error) {
    struct suppressions suppressions = {0};
    const struct frame_names names = names_frames(opened->names);
    uint32_t *rows = calloc(opened->profile.stack_count + 1, sizeof *rows);
    bool is_ok = rows != NULL || error_set(error, "no memory for the stacks");
    is_ok = is_ok && add_measure(row, HISTORY_PEAK, opened, rows, error);
    for (size_t i = HISTORY_PEAK + 1; i < HISTORY_STACK_MEASURES && is_ok; i++)
        if (i != HISTORY_EXIT)
            diff_add_measure(&row->stacks, i, &opened->profile, stack_measures[i], rows);
    is_ok = is_ok && add_sites(row, opened, &names, rows, top);
    if (is_ok && has_exit) {
        size_t stacks = opened->profile.stack_count;
        is_ok = *row->region || offenders_suppress(args, opened, &suppressions, error);
        opened->profile.exit_bytes =
            figures_add(opened->profile.exit_bytes, -offenders_suppressed(&suppressions));
        if (is_ok && opened->profile.stack_count == stacks)
            diff_add_measure(&row->stacks, HISTORY_EXIT, &opened->profile, MEASURE_EXIT, rows);
        else
            is_ok = is_ok && add_measure(row, HISTORY_EXIT, opened, rows, error);
    }
    if (is_ok) add_figures(row, opened, has_exit);
    suppressions_free(&suppressions);
    free(rows);
    return is_ok;
}

struct process {
    const struct command_args *args;
    const char *path, *test, *program, *top;
    bool has_exit;
};

static bool take_one(struct taken *taken, const struct process *process, const char *region,
                     struct error *error) {
    struct opened opened;
    if (!offenders_open(process->args, process->path, &opened, NULL, error)) return false;
    struct taken_row *row = find_or_add(taken, process->test, process->program, region);
    bool is_ok = row && (!*region || offenders_keep_region(&opened, region));
    if (!is_ok) error_set(error, "no memory for the figures");
    is_ok =
        is_ok && add_process(row, process->args, &opened, process->has_exit, process->top, error);
    opened_close(&opened);
    return is_ok;
}

static bool take_regions(struct taken *taken, const struct process *process, struct error *error) {
    struct recording recording;
    struct scopes scopes;
    size_t count = 0;
    if (!recording_open(process->path, &recording, error)) return false;
    bool is_read = scopes_read(&scopes, &recording);
    bool is_ok = is_read || error_set(error, "no memory for the regions");
    for (size_t i = 1; is_read && is_ok && i < scopes.count; i++) {
        if (scopes.list[i].kind != CAIRN_SCOPE_REGION) continue;
        if (count++ < REGIONS_MAX)
            is_ok = take_one(taken, process, scopes.list[i].path, error);
        else
            taken->regions_left_out++;
    }
    if (is_read) scopes_free(&scopes);
    recording_close(&recording);
    return is_ok;
}

// cargo adds a number to a program's name that another compiler or option changes.
static void cut_number(char *name) {
    enum { DIGITS = 16 };
    size_t length = strlen(name);
    if (length <= DIGITS + 1 || name[length - DIGITS - 1] != '-') return;
    if (strspn(name + length - DIGITS, "0123456789abcdef") == DIGITS) name[length - DIGITS - 1] = 0;
}

bool take_add_process(struct taken *taken, const struct command_args *args, const char *path,
                      const struct run_row *row, const char *test, const char *top,
                      struct error *error) {
    char program[RUN_TEXT_MAX];
    snprintf(program, sizeof program, "%s", row->name);
    cut_number(program);
    const struct process process = {.args = args,
                                    .path = path,
                                    .test = test ? test : program,
                                    .program = program,
                                    .top = top,
                                    .has_exit = row->stop_reason != CAIRN_STOP_EXEC};
    return take_one(taken, &process, "", error) && take_regions(taken, &process, error);
}

static bool add_run(struct taken *taken, const struct command_args *args, const char *directory,
                    const char *test, const char *top, struct error *error) {
    struct run run;
    if (!run_open(directory, &run, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < run.rows.count && is_ok; i++) {
        const struct run_row *row = &run.rows.items[i];
        char path[PATH_MAX];
        if (!*row->file) continue;
        int length = snprintf(path, sizeof path, "%s/%s", run.directory, row->file);
        is_ok = length < (int)sizeof path
                    ? take_add_process(taken, args, path, row, test, top, error)
                    : error_set(error, "%s: path too long", row->file);
    }
    run_close(&run);
    return is_ok;
}

bool take_add(struct taken *taken, const struct command_args *args, const char *path,
              const char *process, const char *test, const char *top, struct error *error) {
    struct subject subject;
    struct recording recording;
    struct run_row row;
    if (!subject_find(path, &subject, error)) return false;
    if (process && !subject_enter(&subject, process, error)) return false;
    if (subject.is_run) return add_run(taken, args, subject.path, test, top, error);
    if (!recording_open(subject.path, &recording, error)) return false;
    run_row_of(&recording, &row);
    recording_close(&recording);
    return take_add_process(taken, args, subject.path, &row, test, top, error);
}
