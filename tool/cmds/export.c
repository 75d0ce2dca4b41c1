// SPDX-License-Identifier: Apache-2.0
// cairn export: a recording in the format of another tool. The formats are rows of a table in
// tool/export; here their input is put together: profile, names, and what a report says about
// trust, narrowed by the same filters as a report.
#include <string.h>
#include <unistd.h>

#include "tool/base/output.h"
#include "tool/cmds/commands.h"
#include "tool/query/exported.h"
#include "tool/query/merged.h"
#include "tool/query/views.h"

enum { NAME_BYTES = 256 };

struct order {
    const struct export_format *format;
    const char *path;  // NULL or "-": standard output
    bool is_by_chosen;
    bool can_replace;
    struct request request;
};

static bool choose_format(const struct command_args *args, struct order *order,
                          struct error *error) {
    const char *name = args_text(args, OPTION_FORMAT, NULL);
    if (name)
        order->format = export_format_find(name);
    else if (order->path)
        order->format = export_format_of_path(order->path);
    if (order->format) return true;
    char known[NAME_BYTES] = "";
    size_t used = 0;
    for (const struct export_format *format = export_formats; format->name; format++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 format->name);
    if (name) return error_set(error, "export: there is no format \"%s\", but %s", name, known);
    if (order->path)
        return error_set(error,
                         "export: the ending of \"%s\" names no format; --format is one of %s",
                         order->path, known);
    return error_set(error, "export: which format? --format is one of %s", known);
}

static bool read_order(const struct command_args *args, struct order *order, struct error *error) {
    *order = (struct order){.path = args_text(args, OPTION_OUTPUT, NULL),
                            .is_by_chosen = args_has(args, OPTION_BY),
                            .can_replace = args_has(args, OPTION_FORCE)};
    if (!choose_format(args, order, error) || !request_read(args, &order->request, error))
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

static bool write_to(const struct order *order, const struct export *export, struct error *error) {
    struct output output;
    const struct export_format *format = order->format;
    bool is_open = format->write ? output_open(order->path, order->can_replace, &output, error)
                                 : output_prepare(order->path, order->can_replace, &output, error);
    if (!is_open) return false;
    bool is_written = format->write ? format->write(output.file, export, error)
                                    : format->write_file(output.temporary, export, error);
    if (is_written) return output_commit(&output, error);
    output_cancel(&output);
    return false;
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

static bool write_export(const struct order *order, struct filter *filter, struct opened *opened,
                         struct error *error) {
    const struct frame_names *names;
    struct frame_names own_names;
    struct exported exported = {0};
    const struct view_options *options = &order->request.options;
    bool is_ok = request_apply(&order->request, filter, opened, &names, &own_names, error) &&
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
    is_ok = is_ok && write_to(order, &exported.export, error);
    exported_free(&exported);
    return is_ok;
}

int cmd_export(const struct command_args *args) {
    struct order order;
    struct opened opened;
    struct filter *filter;
    struct error error;
    if (!read_order(args, &order, &error)) return command_fail(STATUS_USAGE, &error);
    if (!filter_open(&filter, &order.request.filter, &error)) {
        error_wrap(&error, "export");
        return command_fail(STATUS_USAGE, &error);
    }
    const struct narrowing narrowing = {&order.request, filter};
    const struct opening opening = {.words = args->words,
                                    .count = args->word_count,
                                    .process = args_text(args, OPTION_PROCESS, NULL),
                                    .narrow = request_narrow,
                                    .context = &narrowing};
    bool is_ok = opening_open(&opening, &opened, &error);
    if (is_ok) {
        is_ok = write_export(&order, filter, &opened, &error);
        opened_close(&opened);
    }
    filter_close(filter);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
