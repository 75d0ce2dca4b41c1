// SPDX-License-Identifier: Apache-2.0
// Names of the frames in a file of runtime/torture: first all are asked for, then they are looked
// up in one go, then they are there. The texts of the answers are the plan's.
#ifndef TOOL_TORTURE_NAMES_H
#define TOOL_TORTURE_NAMES_H

#include "format/torture.h"
#include "tool/symbol/symbol.h"
#include "tool/torture/torture.h"

struct torture_names {
    struct torture_plan *plan;  // its symbols are open
    struct symbol_job jobs[TORTURE_MODULES];
    size_t rooms[TORTURE_MODULES];
    const char *paths[TORTURE_MODULES];
};

// The whole file, which may be of a program that wrote anything into it; NULL with an error. For
// torture_map_close().
struct torture_map *torture_map_open(const char *path, struct error *error);
void torture_map_close(struct torture_map *map);

// NULL: no memory. For torture_names_free().
struct torture_names *torture_names_start(struct torture_plan *plan, const struct torture_map *map);
bool torture_names_ask(struct torture_names *names, uint64_t frame);
bool torture_names_look_up(struct torture_names *names, struct error *error);
// With the inlined ones; for free(). NULL: no memory.
struct torture_frame *torture_names_frames(const struct torture_names *names,
                                           const uint64_t *frames, size_t count, size_t *found);
void torture_names_free(struct torture_names *names);

#endif
