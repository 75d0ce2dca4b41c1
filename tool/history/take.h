// SPDX-License-Identifier: Apache-2.0
// What a recording adds to a history: figures by test, program and region, each with its stacks.
// Processes of one program in one test are added up.
#ifndef TOOL_HISTORY_TAKE_H
#define TOOL_HISTORY_TAKE_H

#include "tool/history/measures.h"
#include "tool/query/arguments.h"
#include "tool/render/diff.h"

struct taken_site {
    uint32_t frame;  // the first frame of the program's own, or the first one; among the names
    char *place;     // "src/parser.c:120", below the project where it lies there; NULL: not known
};

struct taken_row {
    char *test, *program, *region;  // safe texts; region "": all of the process
    uint32_t process_count;
    unsigned flags;  // HISTORY_IS_...
    struct history_figure figures[HISTORY_MEASURES];
    struct diff stacks;              // a row each; "recordings" are the measures of stacks
    ARRAY(struct taken_site) sites;  // by row
};

struct taken {
    ARRAY(struct taken_row) rows;
    size_t regions_left_out;  // of programs with very many
};

void take_free(struct taken *taken);

// Adds the recording or run at `path`; `test` NULL: each program is a test of its name. Paths below
// `top` are kept without it. `process` NULL: all of a run.
bool take_add(struct taken *taken, const struct command_args *args, const char *path,
              const char *process, const char *test, const char *top, struct error *error);

// Adds one process.
struct run_row;
bool take_add_process(struct taken *taken, const struct command_args *args, const char *path,
                      const struct run_row *row, const char *test, const char *top,
                      struct error *error);

#endif
