// SPDX-License-Identifier: Apache-2.0
// cairn export: a recording in the format of another tool. The formats are rows of a table in
// tool/export; here their input is put together: profile, names, and what a report says about
// trust.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/opened.h"
#include "tool/cmds/subject.h"
#include "tool/export/export.h"
#include "tool/render/report_json.h"
#include "tool/render/trust.h"

enum { NAME_BYTES = 256, LINE_COLUMNS = 4000 };

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

// The trust line in one piece, for free(); NULL without memory.
static char *trust_text(const struct profile *profile, const struct frame_names *names) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    struct terminal terminal = {.out = out, .columns = LINE_COLUMNS};
    trust_print(&terminal, profile, names);
    if (fclose(out) || !text) {
        free(text);
        return NULL;
    }
    text[strcspn(text, "\n")] = 0;
    size_t blanks = strspn(text, " ");
    memmove(text, text + blanks, strlen(text + blanks) + 1);
    return text;
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

static bool export_opened(struct opened *opened, const struct request *request,
                          struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(opened->names, profile->stacks[i].node, 0);
    if (!names_resolve(opened->names, error)) return false;
    struct frame_names names = names_frames(opened->names);
    char program[NAME_BYTES], command[REPORT_COMMAND_BYTES];
    char *trust = trust_text(profile, &names);
    if (!trust) return error_set(error, "no memory for the trust line");
    program_name(profile, program, sizeof program);
    report_command_line(&profile->recording->header, command, sizeof command);
    const struct export export = {.profile = profile,
                                  .names = &names,
                                  .by = request->by,
                                  .is_by_chosen = request->is_by_chosen,
                                  .has_all_frames = request->has_all_frames,
                                  .process_count = 1,
                                  .program = program,
                                  .command = command,
                                  .trust = trust,
                                  .tool_version = CAIRN_TOOL_VERSION};
    bool is_ok = write_to(request, &export, error);
    free(trust);
    return is_ok;
}

int cmd_export(const struct command_args *args) {
    struct request request;
    struct subject subject;
    struct opened opened;
    struct error error;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (!read_request(args, &request, &error)) return command_fail(STATUS_USAGE, &error);
    if (!subject_find(args->words[0], &subject, &error) ||
        (process && !subject_enter(&subject, process, &error)) ||
        !opened_open(subject.path, &opened, &error))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = export_opened(&opened, &request, &error);
    opened_close(&opened);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
