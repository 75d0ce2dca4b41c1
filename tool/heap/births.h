// SPDX-License-Identifier: Apache-2.0
// How long blocks of a recorded process had lived when its memory was taken: with --ages their
// births lie behind the slots of the live map (format/live_map.h).
#ifndef TOOL_HEAP_BIRTHS_H
#define TOOL_HEAP_BIRTHS_H

#include <stdbool.h>

#include "format/format.h"
#include "tool/heap/image.h"

struct core_births {
    const struct core_image *core;
    uint64_t live_map;
    uint32_t top_count;
    uint32_t now_ms;  // of the clock that births have
    bool are_known;   // the others are for that
    bool is_wide;
    uint64_t leaf, at;  // the address of the last block's 4 MiB, and where its births lie; 0: none
};

// `header`: of the recording. Of a core without a tool beside the process the clock is as old as
// the tool's last look.
struct core_births core_births_of(const struct core_image *core, const struct cairn_header *header);

// Of the block in use that begins at the address. False: not known.
bool core_births_age(struct core_births *births, uint64_t address, uint64_t *age_ms);

#endif
