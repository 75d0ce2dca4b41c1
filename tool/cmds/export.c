// SPDX-License-Identifier: Apache-2.0
// cairn export: a recording in the format of another tool. The formats are rows of a table in
// tool/export; here their input is put together: profile, names, and what a report says about
// trust.
#include <string.h>
#include <unistd.h>

#include "tool/base/output.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/exported.h"
#include "tool/cmds/subject.h"

enum { NAME_BYTES = 256 };

struct request {
    const struct export_format *format;
    enum measure by;
    bool is_by_chosen;
    bool has_all_frames;
    const char *path;  // NULL or "-": standard output
    bool can_replace;
};

static bool choose_format(const struct command_args *args, struct request *request,
                          struct error *error) {
    const char *name = args_text(args, OPTION_FORMAT, NULL);
    if (name)
        request->format = export_format_find(name);
    else if (request->path)
        request->format = export_format_of_path(request->path);
    if (request->format) return true;
    char known[NAME_BYTES] = "";
    size_t used = 0;
    for (const struct export_format *format = export_formats; format->name; format++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 format->name);
    if (name) return error_set(error, "export: there is no format \"%s\", but %s", name, known);
    if (request->path)
        return error_set(error,
                         "export: the ending of \"%s\" names no format; --format is one of %s",
                         request->path, known);
    return error_set(error, "export: which format? --format is one of %s", known);
}

static bool read_request(const struct command_args *args, struct request *request,
                         struct error *error) {
    const char *by = args_text(args, OPTION_BY, "peak");
    *request = (struct request){.path = args_text(args, OPTION_OUTPUT, NULL),
                                .is_by_chosen = args_has(args, OPTION_BY),
                                .can_replace = args_has(args, OPTION_FORCE),
                                .has_all_frames = args_has(args, OPTION_ALL_FRAMES)};
    if (!choose_format(args, request, error)) return false;
    if (!measure_parse(by, &request->by))
        return error_set(error,
                         "export: there is no measure \"%s\", but peak, exit, allocated and "
                         "calls",
                         by);
    bool is_stdout = !request->path || !strcmp(request->path, "-");
    if (is_stdout && request->format->write_file)
        return error_set(error, "export: %s needs a file: -o FILE", request->format->name);
    if (is_stdout && request->format->is_binary && isatty(STDOUT_FILENO))
        return error_set(error, "export: %s is not for a terminal: -o FILE", request->format->name);
    return true;
}

static bool write_to(const struct request *request, const struct export *export,
                     struct error *error) {
    struct output output;
    const struct export_format *format = request->format;
    bool is_open = format->write
                       ? output_open(request->path, request->can_replace, &output, error)
                       : output_prepare(request->path, request->can_replace, &output, error);
    if (!is_open) return false;
    bool is_written = format->write ? format->write(output.file, export, error)
                                    : format->write_file(output.temporary, export, error);
    if (is_written) return output_commit(&output, error);
    output_cancel(&output);
    return false;
}

static bool write_export(const struct request *request, struct exported *exported,
                         struct error *error) {
    exported->export.by = request->by;
    exported->export.is_by_chosen = request->is_by_chosen;
    exported->export.has_all_frames = request->has_all_frames;
    return write_to(request, &exported->export, error);
}

static bool export_one(const char *path, const struct request *request, struct error *error) {
    struct opened opened;
    struct exported exported = {0};
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok =
        exported_prepare(&opened, &exported, error) && write_export(request, &exported, error);
    exported_free(&exported);
    opened_close(&opened);
    return is_ok;
}

static bool export_several(const struct command_args *args, const struct request *request,
                           struct error *error) {
    struct merged merged;
    struct exported exported = {0};
    if (!merged_open(args->words, args->word_count, &merged, error)) return false;
    bool is_ok = exported_prepare_merged(&merged, &exported, error) &&
                 write_export(request, &exported, error);
    exported_free(&exported);
    merged_close(&merged);
    return is_ok;
}

int cmd_export(const struct command_args *args) {
    struct request request;
    struct subject subject;
    struct error error;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (!read_request(args, &request, &error)) return command_fail(STATUS_USAGE, &error);
    if (process && args->word_count > 1) {
        error_set(&error, "export: --process chooses from one run, not from several subjects");
        return command_fail(STATUS_USAGE, &error);
    }
    if (!subject_find(args->words[0], &subject, &error) ||
        (process && !subject_enter(&subject, process, &error)))
        return command_fail(STATUS_FAILURE, &error);
    bool is_one = args->word_count <= 1 && !subject.is_run;
    bool is_ok = is_one ? export_one(subject.path, &request, &error)
                        : export_several(args, &request, &error);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
