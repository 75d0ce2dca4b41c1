// SPDX-License-Identifier: Apache-2.0
// Finds the command in the table, runs it, and makes sure that what it printed has arrived.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/version.h"
#include "tool/cmds/commands.h"
#include "tool/query/name_options.h"
#include "tool/render/terminal.h"

static int print_and_end(void (*print)(FILE *out), FILE *out, int status) {
    print(out);
    return status;
}

static bool is_one_of(const char *word, const char *first, const char *second) {
    return !strcmp(word, first) || !strcmp(word, second);
}

static bool read_color(const struct command_args *args, struct error *error) {
    const char *when = args_text(args, OPTION_COLOR, "auto");
    return terminal_set_color(when) ||
           error_set(error, "%s: --color: auto, always or never, not \"%s\"", args->command->name,
                     when);
}

static int run_command(int argc, char **argv) {
    if (argc < 2) return print_and_end(commands_print_overview, stderr, STATUS_USAGE);
    const char *word = argv[1];
    if (is_one_of(word, "--help", "-h"))
        return print_and_end(commands_print_overview, stdout, STATUS_OK);
    if (is_one_of(word, "--version", "-V")) return print_and_end(version_print, stdout, STATUS_OK);
    const struct command *command = command_find(word);
    if (!command) {
        struct error error;
        error_set(&error, "there is no command \"%s\"; cairn help lists them", word);
        return command_fail(STATUS_USAGE, &error);
    }
    struct command_args args;
    int status;
    if (!command_parse(command, argc - 1, argv + 1, &args, &status)) return status;
    struct error error;
    if (!name_options_read(&args, &error) || !read_color(&args, &error))
        return command_fail(STATUS_USAGE, &error);
    return command->run(&args);
}

int main(int argc, char **argv) {
    int status = run_command(argc, argv);
    bool is_written = !fflush(stdout) && !ferror(stdout);
    if (is_written || status != STATUS_OK || errno == EPIPE) return status;
    struct error error;
    error_set(&error, "cannot write the output: %s", strerror(errno));
    return command_fail(STATUS_FAILURE, &error);
}
