// SPDX-License-Identifier: Apache-2.0
// cairn check --series: what was recorded becomes a run of a history.
#ifndef TOOL_CMDS_CHECK_SERIES_H
#define TOOL_CMDS_CHECK_SERIES_H

#include "tool/check/results.h"
#include "tool/history/store.h"

struct check_series {
    const char *file;  // NULL: no history is kept
    const char *test;  // name of the test; NULL: that of each program
    struct git_project project;
    struct store_run run;
    char *roots;
    char system[256];
    struct taken taken;
    ARRAY(char *) again;  // tests that are to be recorded again before it is said what moved
};

// What the machine is: "Debian GNU/Linux 12 (bookworm), x86_64".
void check_series_name_system(struct check_series *series);

// Finds the commit, before anything runs. False with an error.
bool check_series_begin(const struct command_args *args, struct check_series *series,
                        struct error *error);
void check_series_end(struct check_series *series);

// Adds the recording or run at `path` as a test.
bool check_series_take(struct check_series *series, const struct command_args *args,
                       const char *path, const char *test, struct error *error);

// Appends what was taken, says so, and finds the tests of which another run would say more: a
// figure moved, as one run has it, or may have.
bool check_series_append(struct check_series *series, struct error *error);
// Says whether a test is one of these.
bool check_series_is_again(const struct check_series *series, const char *test);
// Says that they are recorded again, and forgets what was taken.
void check_series_repeat(struct check_series *series);

// Adds what this commit moved to the results, as notes.
bool check_series_moves(const struct check_series *series, struct results *results,
                        struct error *error);

#endif
