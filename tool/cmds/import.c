// SPDX-License-Identifier: Apache-2.0
// cairn import: another profiler's file as a recording.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/near.h"
#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/import/import.h"
#include "tool/query/name_options.h"

enum { TEXT_BYTES = 2 * IMPORT_TEXT_BYTES, NAMES_BYTES = 256 };

static bool choose_format(const struct command_args *args, const struct import_format **format,
                          struct error *error) {
    const char *name = args_text(args, OPTION_FORMAT, NULL);
    char known[NAMES_BYTES] = "", question[NEAR_QUESTION_BYTES];
    *format = name ? import_format_find(name) : NULL;
    if (!name || *format) return true;
    for (const struct import_format *row = import_formats; row->name; row++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", row->name);
    }
    near_ask_of(name, known, question);
    return error_set(error, "import: there is no format \"%s\"%s, but %s", name, question, known);
}

// Only such logs have functions by the program's own numbers.
static bool check_program(const struct imported *imported, const struct import_format *format,
                          struct error *error) {
    return !imported->program || format->read == import_xray ||
           error_set(error, "--program is for logs of xray, and this is a file of %s",
                     format->name);
}

static bool read_file(const char *path, const struct import_format **format,
                      struct imported *imported, struct error *error) {
    FILE *in = fopen(path, "rbe");
    if (!in) return error_set(error, "%s: %s", path, strerror(errno));
    struct stat status;
    struct import_names names = {.options = name_options_symbols()};
    if (!fstat(fileno(in), &status)) names.written_unix_s = (uint64_t)status.st_mtime;
    bool is_ok =
        (import_read(in, format, imported, error) && check_program(imported, *format, error) &&
         import_name_addresses(imported, &names, error)) ||
        error_wrap(error, "%s", path);
    fclose(in);
    return is_ok;
}

static bool write_file(const struct command_args *args, const char *source, const char *format,
                       const struct imported *imported, struct error *error) {
    char usual[PATH_MAX];
    struct output output;
    snprintf(usual, sizeof usual, "%s.cairn", text_base_name(source));
    const char *path = args_text(args, OPTION_OUTPUT, usual);
    if (!output_open(path, args_has(args, OPTION_FORCE), &output, error)) return false;
    if (!import_write(output.file, imported, format, error)) {
        output_cancel(&output);
        return false;
    }
    if (!output_commit(&output, error)) return false;
    char lacks[TEXT_BYTES], name[PATH_MAX];
    text_escape(lacks, sizeof lacks, imported->lacks);
    text_escape(name, sizeof name, path);
    fprintf(stderr, "cairn: %s, from %s: %s%s%s\n", name, format,
            units_counted((int64_t)imported->stacks.count, "stack", "stacks").text,
            *lacks ? "; not available: " : "", lacks);
    if (imported->other_module) {
        text_escape(name, sizeof name, imported->strings.list.items[imported->other_module]);
        fprintf(stderr,
                "cairn: names are missing: %s is not the file that was profiled (--sysroot DIR)\n",
                name);
    }
    if (imported->newer_module) {
        text_escape(name, sizeof name, imported->strings.list.items[imported->newer_module]);
        fprintf(stderr, "cairn: names may be wrong: %s was written after the profile\n", name);
    }
    return true;
}

int cmd_import(const struct command_args *args) {
    const struct import_format *format = NULL;
    struct imported imported;
    struct error error;
    if (!args->word_count) {
        error_set(&error, "import: no file given");
        return command_fail(STATUS_USAGE, &error);
    }
    const char *path = args->words[0];
    if (!choose_format(args, &format, &error)) return command_fail(STATUS_USAGE, &error);
    uint64_t process = 0;
    if (!args_number(args, OPTION_PROCESS, 0, UINT32_MAX, &process, &error))
        return command_fail(STATUS_USAGE, &error);
    bool is_ok = import_start(&imported, &error);
    imported.wanted_pid = (uint32_t)process;
    imported.program = args_text(args, OPTION_PROGRAM, NULL);
    is_ok = is_ok && read_file(path, &format, &imported, &error) && format &&
            write_file(args, path, format->name, &imported, &error);
    import_free(&imported);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
