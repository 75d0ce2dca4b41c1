// SPDX-License-Identifier: Apache-2.0
// In the order in which help lists them.
#include "tool/cmds/commands.h"
#include "tool/cmds/rows.h"

#include <string.h>

const struct command *const commands[] = {
    &command_run,    &command_attach,     &command_ctl,       &command_top,
    &command_push,   &command_report,     &command_leaks,     &command_open,
    &command_serve,  &command_events,     &command_replay,    &command_whatif,
    &command_export, &command_diff,       &command_merge,     &command_import,
    &command_sql,    &command_check,      &command_torture,   &command_history,
    &command_info,   &command_core,       &command_symbolize, &command_mcp,
    &command_env,    &command_gdb_script, &command_help,      NULL,
};

const struct command *command_find(const char *name) {
    for (const struct command *const *command = commands; *command; command++)
        if (!strcmp((*command)->name, name)) return *command;
    return NULL;
}
