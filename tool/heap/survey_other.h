// SPDX-License-Identifier: Apache-2.0
// Figures of a heap that is not glibc's, beside those of its blocks.
#ifndef TOOL_HEAP_SURVEY_OTHER_H
#define TOOL_HEAP_SURVEY_OTHER_H

#include "tool/glibc/other_heap.h"
#include "tool/heap/stopped.h"
#include "tool/model/heap_state.h"

// Adds what another allocator keeps by size, and its pages without blocks. `live` NULL: of a core.
// False without memory.
bool survey_other(const struct core_image *core, const struct stopped_image *live,
                  const struct other_heap *other, struct heap_state *state);

#endif
