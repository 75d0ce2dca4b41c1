// SPDX-License-Identifier: Apache-2.0
// cairn export: a recording in the format of another tool. The formats are rows of a table in
// tool/export; here their input is put together: profile, names, and what a report says about
// trust, narrowed by the same filters as a report.
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/near.h"
#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/base/version.h"
#include "tool/cmds/commands.h"
#include "tool/query/exported.h"
#include "tool/query/merged.h"
#include "tool/query/progress.h"
#include "tool/query/recordings.h"
#include "tool/query/views.h"

enum { NAME_BYTES = 256 };

struct order {
    const struct export_format *format;
    const char *path;  // NULL or "-": standard output
    bool is_by_chosen;
    bool can_replace;
    bool has_snapshots;
    bool has_left_out;  // recordings of a list
    struct request request;
    struct recordings recordings;  // of a format that takes one after the other
};

// The ending of another format ends so too, as .speedscope.json does like .json.
static bool has_shared_ending(const struct export_format *format) {
    size_t length = strlen(format->ending);
    for (const struct export_format *other = export_formats; other->name; other++) {
        size_t whole = strlen(other->ending);
        if (whole > length && !strcmp(other->ending + whole - length, format->ending)) return true;
    }
    return false;
}

static void tell_format(const struct command_args *args, const struct order *order) {
    char safe[PATH_MAX];
    bool is_guessed = !args_has(args, OPTION_FORMAT) && order->path;
    if (!is_guessed || !has_shared_ending(order->format)) return;
    text_escape(safe, sizeof safe, order->path);
    fprintf(stderr, "cairn: %s: format %s (%s)\n", safe, order->format->name, order->format->help);
}

static bool choose_format(const struct command_args *args, struct order *order,
                          struct error *error) {
    const char *name = args_text(args, OPTION_FORMAT, NULL);
    if (name)
        order->format = export_format_find(name);
    else if (order->path)
        order->format = export_format_of_path(order->path);
    if (order->format) return true;
    char known[NAME_BYTES] = "", question[NEAR_QUESTION_BYTES];
    size_t used = 0;
    for (const struct export_format *format = export_formats; format->name; format++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 format->name);
    if (name) {
        near_ask_of(name, known, question);
        return error_set(error, "export: there is no format \"%s\"%s, but %s", name, question,
                         known);
    }
    if (order->path)
        return error_set(error,
                         "export: the ending of \"%s\" names no format; --format is one of %s",
                         order->path, known);
    return error_set(error, "export: which format? --format is one of %s", known);
}

// All heaps at once: of whole stacks, since a stack does not say what it has of each thread.
static bool read_heaps(const struct command_args *args, struct order *order, struct error *error) {
    static const enum option_id of_one[] = {OPTION_THREAD, OPTION_REGION, OPTION_CONTEXT,
                                            OPTION_LIFESPAN};
    const char *heap = order->request.heap;
    if (!heap || *heap) return true;
    order->request.is_of_all_heaps = true;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
        if (args_has(args, of_one[i]))
            return error_set(error,
                             "export: --heap '' is of whole heaps; one of them (--heap NAME) "
                             "can be narrowed by thread, region, context and lifespan");
    return true;
}

// What only formats of many recordings have.
static bool read_labels(const struct command_args *args, struct order *order, struct error *error) {
    size_t index = 0;
    // threads and lifespans are not known of snapshots
    order->has_snapshots = order->format->series
                               ? args_has(args, OPTION_SNAPSHOTS)
                               : !args_has(args, OPTION_THREAD) && !args_has(args, OPTION_LIFESPAN);
    order->recordings.process = args_text(args, OPTION_PROCESS, NULL);
    if (!order->format->series &&
        (args_has(args, OPTION_LABEL) || args_has(args, OPTION_SNAPSHOTS)))
        return error_set(error, "export: --label and --snapshots are for parquet, not for %s",
                         order->format->name);
    for (const char *text; (text = args_next(args, OPTION_LABEL, &index));)
        if (!recordings_add_label(&order->recordings, text, error))
            return error_wrap(error, "export: --label");
    return true;
}

static bool read_order(const struct command_args *args, struct order *order, struct error *error) {
    *order = (struct order){.path = args_text(args, OPTION_OUTPUT, NULL),
                            .is_by_chosen = args_has(args, OPTION_BY),
                            .can_replace = args_has(args, OPTION_FORCE)};
    if (!choose_format(args, order, error) || !request_read(args, &order->request, error) ||
        !read_heaps(args, order, error) || !read_labels(args, order, error))
        return false;
    if (order->request.options.by > MEASURE_EXIT_BLOCKS)
        return error_set(error,
                         "export: no format has the measure %s, but peak, exit, allocated "
                         "and calls",
                         measure_name(order->request.options.by));
    order->is_by_chosen = order->is_by_chosen || order->request.options.by != MEASURE_PEAK;
    if (args_has(args, OPTION_PROCESS) && args->word_count > 1)
        return error_set(error,
                         "export: --process chooses from one run, not from several subjects");
    bool is_stdout = !order->path || !strcmp(order->path, "-");
    if (is_stdout && order->format->write_file)
        return error_set(error, "export: %s needs a file: -o FILE", order->format->name);
    if (is_stdout && order->format->is_binary && isatty(STDOUT_FILENO))
        return error_set(error, "export: %s is not for a terminal: -o FILE", order->format->name);
    return true;
}

static bool finish(struct output *output, bool is_written, struct error *error) {
    if (is_written) return output_commit(output, error);
    output_cancel(output);
    return false;
}

static bool write_to(const struct order *order, const struct export *export, struct error *error) {
    struct output output;
    const struct export_format *format = order->format;
    bool is_stream = !format->write_file;
    bool is_open = is_stream ? output_open(order->path, order->can_replace, &output, error)
                             : output_prepare(order->path, order->can_replace, &output, error);
    return is_open && finish(&output,
                             is_stream ? export_stream(format, output.file, export, error)
                                       : format->write_file(output.temporary, export, error),
                             error);
}

// What --top, --threshold, --min-bytes and --depth leave of the stacks.
static bool keep_listed(const struct view_options *options, struct profile *profile,
                        struct error *error) {
    int64_t least = view_threshold(options, measure_total(options->by, profile).value);
    bool has_least = options->top || options->threshold > 0 || options->min_bytes;
    bool is_ok = !has_least || profile_keep_largest(profile, options->by, options->top, least);
    is_ok = is_ok && (!options->depth || profile_cut_stacks(profile, options->depth));
    return is_ok || error_set(error, "no memory for a filter");
}

static bool is_limited(const struct view_options *options) {
    return options->top || options->threshold > 0 || options->min_bytes || options->depth;
}

// What was narrowed is written as if it were all there is; timeline and threads say nothing of it.
static void make_part(struct opened *opened) {
    profile_sum_up(&opened->profile);
    opened->profile.thread_count = 0;
    opened->recording.sections[CAIRN_SECTION_POINTS] = (struct recording_section){0};
}

// Hands what was opened to `write`, narrowed and named.
static bool write_export(const struct order *order, struct filter *filter, struct opened *opened,
                         bool (*write)(void *context, const struct export *export,
                                       struct error *error),
                         void *context, struct error *error) {
    const struct frame_names *names;
    struct frame_names own_names;
    struct exported exported = {0};
    struct request request = order->request;
    const struct view_options *options = &request.options;
    bool is_ok = export_format_check(order->format, &opened->profile, error) &&
                 request_settle(&request, &opened->profile, error) &&
                 request_apply(&request, filter, opened, &names, &own_names, error) &&
                 keep_listed(options, &opened->profile, error);
    bool is_part = filter_is_any(filter) || is_limited(options);
    if (is_ok && is_part) make_part(opened);
    is_ok = is_ok && exported_prepare_with(opened, names, &exported, error) &&
            (!is_part || exported_say_part(&exported, filter, error)) &&
            exported_say_estimates(&exported, error);
    exported.export.by = options->by;
    exported.export.is_by_chosen = order->is_by_chosen;
    exported.export.has_all_frames = options->has_all_frames;
    exported.export.has_lines = options->has_lines;
    exported.export.has_snapshots = order->has_snapshots;
    is_ok = is_ok && write(context, &exported.export, error);
    exported_free(&exported);
    return is_ok;
}

static bool write_sum(void *context, const struct export *export, struct error *error) {
    return write_to(context, export, error);
}

// The sum of all subjects.
static bool export_sum(struct order *order, const struct command_args *args, struct filter *filter,
                       struct error *error) {
    const struct narrowing narrowing = {&order->request, filter};
    const struct opening opening = {.words = args->words,
                                    .count = args->word_count,
                                    .process = args_text(args, OPTION_PROCESS, NULL),
                                    .narrow = request_narrow,
                                    .context = &narrowing};
    struct opened opened;
    if (!opening_open(&opening, &opened, error)) return false;
    bool is_one = !order->request.is_of_all_heaps || !opened.merge;
    if (!is_one) error_set(error, "--heap '' is of one process: --process NAME or PID");
    bool is_ok = is_one && write_export(order, filter, &opened, write_sum, order, error);
    order->has_left_out = opened.left_out;
    opened_close(&opened);
    return is_ok;
}

// One recording after the other.
struct adding {
    const struct export_series *series;
    void *table;
    const struct export_labels *labels;
    size_t stack_count;
};

static bool add_one(void *context, const struct export *export, struct error *error) {
    struct adding *adding = context;
    struct export labelled = *export;
    labelled.series_labels = adding->labels;
    adding->stack_count += export->profile->stack_count;
    return adding->series->add(adding->table, &labelled, error);
}

static bool add_recording(struct order *order, const struct listed_recording *listed,
                          struct filter *filter, struct adding *adding, struct error *error) {
    struct opened opened;
    if (!opened_open(listed->path, &opened, error)) {
        if (listed->is_of_list)
            recordings_leave_out(&order->recordings, error);
        else
            order->recordings.bad_files++;
        return listed->is_of_list || listed->is_of_run;
    }
    const struct narrowing narrowing = {&order->request, filter};
    bool is_ok = request_narrow(&narrowing, &opened.profile, error) &&
                 write_export(order, filter, &opened, add_one, adding, error);
    opened_close(&opened);
    return is_ok || error_wrap(error, "%s", listed->path);
}

static bool add_recordings(struct order *order, struct filter *filter, struct adding *adding,
                           struct error *error) {
    struct progress progress;
    const struct symbol_progress shown = progress_start(&progress, "exporting recordings");
    size_t count = order->recordings.list.count;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < count; i++) {
        recordings_label(&order->recordings, i);
        is_ok = add_recording(order, &order->recordings.list.items[i], filter, adding, error);
        shown.show(shown.context, i + 1, count);
    }
    progress_end(&progress);
    is_ok = is_ok &&
            (adding->stack_count || error_set(error, "there is no stack in it that was asked for"));
    size_t bad_files = order->recordings.bad_files;
    order->has_left_out = order->recordings.left_out;
    if (is_ok && bad_files)
        fprintf(stderr, "cairn: %s could not be read\n",
                units_counted((int64_t)bad_files, "recording", "recordings").text);
    return is_ok;
}

static bool export_series(struct order *order, const struct command_args *args,
                          struct filter *filter, struct error *error) {
    struct output output;
    struct export_labels labels;
    struct adding adding = {.series = order->format->series, .labels = &labels};
    if (!recordings_find_all(&order->recordings, args->words, args->word_count, error))
        return false;
    if (!recordings_labels(&order->recordings, &labels))
        return error_set(error, "no memory for labels");
    if (!output_open(order->path, order->can_replace, &output, error)) return false;
    adding.table = adding.series->open(output.file, &labels, CAIRN_TOOL_VERSION, error);
    bool is_ok = adding.table && add_recordings(order, filter, &adding, error);
    if (adding.table) is_ok = adding.series->close(adding.table, is_ok, error) && is_ok;
    return finish(&output, is_ok, error);
}

int cmd_export(const struct command_args *args) {
    struct order order;
    struct filter *filter;
    struct error error;
    if (!read_order(args, &order, &error)) {
        recordings_free(&order.recordings);
        return command_fail(STATUS_USAGE, &error);
    }
    // of many recordings each may lack what is looked for
    order.request.filter.may_be_empty = order.format->series != NULL;
    if (!filter_open(&filter, &order.request.filter, &error)) {
        error_wrap(&error, "export");
        recordings_free(&order.recordings);
        return command_fail(STATUS_USAGE, &error);
    }
    bool is_ok = order.format->series ? export_series(&order, args, filter, &error)
                                      : export_sum(&order, args, filter, &error);
    recordings_free(&order.recordings);
    filter_close(filter);
    if (is_ok) tell_format(args, &order);
    int status = order.has_left_out ? STATUS_FAILURE : STATUS_OK;
    return is_ok ? status : command_fail(STATUS_FAILURE, &error);
}
