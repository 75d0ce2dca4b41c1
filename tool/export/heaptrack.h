// SPDX-License-Identifier: Apache-2.0
// heaptrack's format for events that are known one by one (the format of `cairn export` makes them
// up from sums).
#ifndef TOOL_EXPORT_HEAPTRACK_H
#define TOOL_EXPORT_HEAPTRACK_H

#include "tool/export/export.h"

struct heaptrack_log;

// Begins with command, stacks and names of the profile; NULL without memory. Time must not go back.
struct heaptrack_log *heaptrack_open(FILE *out, const struct export *export, struct error *error);
void heaptrack_time(struct heaptrack_log *log, uint64_t ms);
// A block of a stack, by its node; TREE_ROOT: the stack is not known.
void heaptrack_alloc(struct heaptrack_log *log, uint32_t node, uint64_t bytes);
void heaptrack_free(struct heaptrack_log *log, uint32_t node, uint64_t bytes);
// Takes NULL for the error, if there was one before.
bool heaptrack_close(struct heaptrack_log *log, struct error *error);

#endif
