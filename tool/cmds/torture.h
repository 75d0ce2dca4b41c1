// SPDX-License-Identifier: Apache-2.0
// cairn torture, and its row of the table of commands.
#ifndef TOOL_CMDS_TORTURE_H
#define TOOL_CMDS_TORTURE_H

#include "tool/query/arguments.h"

int cmd_torture(const struct command_args *args);

// clang-format off
#define TORTURE_COMMAND                                                                            \
    {                                                                                              \
        .name = "torture",                                                                         \
        .arguments = "-- COMMAND...",                                                              \
        .help = "make each allocation fail once: crashes, hangs and leaks without memory",         \
        .description =                                                                             \
            "The command runs again and again, each time with another allocation that fails: of\n" \
            "each stack that allocates the first one, then a later one. A finding is a run that\n" \
            "crashes, aborts, does not end, leaks, has a sanitizer's report, or ends as usual with\n" \
            "other output; an error message and another exit status are none. Each comes with the\n" \
            "stack that failed and a command that repeats it. This is the only command that\n"     \
            "changes what a program does. See docs/howto/torture.md.\n"                            \
            "Ends with 1 if there are findings.\n",                                                \
        .run = cmd_torture,                                                                        \
        .has_program = true,                                                                       \
        .words_max = SIZE_MAX,                                                                     \
        .options = {                                                                               \
            {OPTION_STACKS, "stacks", 0, "REGEX", "only stacks with such a function, file, module"}, \
            {OPTION_BUDGET, "budget", 0, "DURATION", "start no run after this time, as 60s"},      \
            {OPTION_TIME_LIMIT, "time-limit", 0, "DURATION",                                       \
             "of a run (10 times the usual, 10 s at least)"},                                      \
            {OPTION_JOBS, "jobs", 'j', "N", "runs at one time (1)"},                               \
            {OPTION_STATE, "state", 0, "DIR", "keep results there, and go on from those"},         \
            {OPTION_TORTURE_SEED, "seed", 0, "N", "which later allocation of a stack fails (0)"},  \
            {OPTION_ONLY, "only", 0, "STACK:N", "this allocation alone, as a finding names it"},   \
            {OPTION_ALLOW, "allow", 0, "KIND,...", "what is no finding: abort, leak, silent, ..."}, \
            {OPTION_ALLOW_IN, "allow-in", 0, "REGEX", "a fault within such a library is no finding"}, \
            {OPTION_NO_LEAKS, "no-leaks", 0, NULL, "look for no leaks: runs are shorter"},         \
            {OPTION_STDIN, "stdin", 0, "FILE", "what the command reads (nothing)"},                \
            {OPTION_MAX_OUTPUT, "max-output", 0, "SIZE",                                           \
             "of a run's output, and of each file (256M)"},                                        \
            {OPTION_JSON, "json", 0, NULL, "one JSON object"},                                     \
            OPTION_ROWS_FORGES,                                                                    \
            {OPTION_QUIET, "quiet", 'q', NULL, "no progress"},                                     \
            OPTION_ROWS_SYMBOL_FILES,                                                              \
        },                                                                                         \
    }
// clang-format on

#endif
