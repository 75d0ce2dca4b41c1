// SPDX-License-Identifier: Apache-2.0
// The figures of a heap (tool/model/heap_state.h) out of a process' memory, copied or in a core.
#ifndef TOOL_HEAP_SURVEY_H
#define TOOL_HEAP_SURVEY_H

#include "tool/heap/blocks.h"
#include "tool/heap/recorded.h"
#include "tool/heap/stopped.h"
#include "tool/heap/types.h"
#include "tool/model/heap_state.h"
#include "tool/model/profile.h"

struct survey {
    const struct core_image *core;
    const struct stopped_image *live;    // NULL: a core, which does not have what was resident
    const struct core_blocks *blocks;    // NULL: nothing was recorded
    const struct core_samples *samples;  // likewise; without items unless some were sampled
    const struct profile *profile;       // of the recording, not narrowed; NULL likewise
    bool may_be_another;                 // an allocator than glibc's: such heaps are searched
    struct core_types *types;            // where there is no profile; NULL: of none
};

// False if there is no heap that can be read, or without memory.
bool survey_build(const struct survey *survey, struct heap_state *state, struct error *error);

#endif
