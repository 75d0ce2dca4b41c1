// SPDX-License-Identifier: Apache-2.0
// The one table of commands and their options: parsing, every --help, `cairn help`, the man page
// and shell completion are made from it. Its rows are in rows_*.c, their order is in commands.c. A
// new option is a row; a new command is a row and a file cmds/NAME.c.
//
// A command returns the status to end with: 0, 1 for a failure it has printed to stderr, 2 for
// wrong use; `run` has the numbers of env and docker.
#ifndef TOOL_CMDS_COMMANDS_H
#define TOOL_CMDS_COMMANDS_H

#include <stdio.h>

#include "tool/query/arguments.h"

extern const struct command *const commands[];  // ends with NULL

// The commands that the first help shows, in its order; it has the others behind `cairn help all`.
struct command_group {
    const char *title;
    const struct command *list[8];  // ends with NULL
};
extern const struct command_group command_groups[];  // ends with title NULL

// Runs a command line, the word "cairn" or so in front; the status to end with.
int commands_run(int argc, char **argv);

const struct command *command_find(const char *name);

// Reads the words behind the command's name. False after telling what is wrong or after --help;
// `status` is then what to end with.
bool command_parse(const struct command *command, int argc, char **argv, struct command_args *args,
                   int *status);

// Says what is wrong with words whose first is not a command, and which line may be meant. Returns
// the status to end with. `words` ends with NULL.
int command_unknown(char **words);

// Lines of help, made of the table: cmds/help.c.
void command_print_usage(FILE *out, const struct command *command);  // without an end of line
// All of its options, or those that it names first.
void command_print_help(FILE *out, const struct command *command, bool is_all);
// A line of a description in whose place the formats of cairn export stand, a line each.
#define COMMAND_FORMATS "@formats\n"
// The description as it is shown, for free(); NULL if there is none, or no memory.
char *command_description(const struct command *command);
void commands_print_overview(FILE *out);

int cmd_run(const struct command_args *args);     // cmds/run.c
int cmd_attach(const struct command_args *args);  // cmds/attach.c
int cmd_ctl(const struct command_args *args);     // cmds/ctl.c
int cmd_top(const struct command_args *args);     // cmds/top.c
int cmd_push(const struct command_args *args);    // cmds/push.c
int cmd_core(const struct command_args *args);    // cmds/core.c
int cmd_gdb_script(const struct command_args *args);
int cmd_env(const struct command_args *args);        // cmds/env.c
int cmd_report(const struct command_args *args);     // cmds/report.c
int cmd_export(const struct command_args *args);     // cmds/export.c
int cmd_events(const struct command_args *args);     // cmds/events.c
int cmd_replay(const struct command_args *args);     // cmds/replay.c
int cmd_whatif(const struct command_args *args);     // cmds/whatif.c
int cmd_open(const struct command_args *args);       // cmds/open.c
int cmd_serve(const struct command_args *args);      // cmds/serve.c
int cmd_check(const struct command_args *args);      // cmds/check.c
int cmd_history(const struct command_args *args);    // cmds/history.c
int cmd_torture(const struct command_args *args);    // cmds/torture.c
int cmd_diff(const struct command_args *args);       // cmds/diff.c
int cmd_merge(const struct command_args *args);      // cmds/merge.c
int cmd_import(const struct command_args *args);     // cmds/import.c
int cmd_sql(const struct command_args *args);        // cmds/sql.c
int cmd_info(const struct command_args *args);       // cmds/info.c
int cmd_help(const struct command_args *args);       // cmds/help.c
int cmd_symbolize(const struct command_args *args);  // cmds/symbolize.c
int cmd_mcp(const struct command_args *args);        // cmds/mcp.c

#endif
