// SPDX-License-Identifier: Apache-2.0
// Types of blocks (tool/heap/typed.h) beside the recording of a process: what calls in the stacks
// of their allocations say of them.
#ifndef TOOL_CMDS_CORE_TYPED_H
#define TOOL_CMDS_CORE_TYPED_H

#include "tool/heap/blocks.h"
#include "tool/heap/typed.h"
#include "tool/model/profile.h"

// `profile`: NULL: nothing is recorded. `blocks`: those that are. NULL after an error.
struct typed *core_typed_open(const struct core_reach *reach, struct core_types *types,
                              const struct profile *profile, const struct core_blocks *blocks,
                              struct error *error);

#endif
