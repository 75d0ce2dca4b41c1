// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/commands.h"

int cmd_help(const struct command_args *args) {
    if (!args->word_count) {
        commands_print_overview(stdout);
        return STATUS_OK;
    }
    const struct command *command = command_find(args->words[0]);
    if (!command) {
        struct error error;
        error_set(&error, "there is no command \"%s\"; cairn help lists them", args->words[0]);
        return command_fail(STATUS_USAGE, &error);
    }
    command_print_help(stdout, command);
    return STATUS_OK;
}
