// SPDX-License-Identifier: Apache-2.0
// The blocks that there were before, counted where the process begins to be recorded: what the
// census (census.h) finds is given to the library, which enters it into its live map.
//
// Both happen during the stop in which the program's calls are led to the library: a block that is
// freed before that is not found, and what is freed after it is known.
#ifndef TOOL_ATTACH_COUNT_H
#define TOOL_ATTACH_COUNT_H

#include "tool/attach/attach.h"

// Everything that can be done while the process runs. What does not work is told in `attach`.
void count_prepare(struct attach *attach, const struct attach_request *request);

// All threads are stopped. False: the allocator's data is being changed; another moment is better.
bool count_find(struct attach *attach);

// The same stop; the slots have been taken.
void count_give(struct attach *attach);

#endif
