// SPDX-License-Identifier: Apache-2.0
// What resident memory consisted of at a moment, as parts that add up to it: the picture that the
// tool took of the process' mappings (cairn_picture), with its heap split as far as it can be.
//
// The heap's blocks are known as requested, not which of their pages are resident. Where live and
// free memory together are more than the resident heap, some of the live memory was never touched
// or is swapped out, and what cannot be split stays one part.
#ifndef TOOL_MODEL_PICTURE_H
#define TOOL_MODEL_PICTURE_H

#include "tool/model/reader.h"

enum picture_part {
    PICTURE_LIVE,    // blocks that the program holds
    PICTURE_SLACK,   // their rounding and headers, an estimate
    PICTURE_FREE,    // free chunks and unused ends of the allocator's arenas
    PICTURE_REST,    // of the heap: thread caches, and whatever of the others is not known
    PICTURE_MAPPED,  // anonymous memory that the program mapped itself
    PICTURE_STACKS,
    PICTURE_FILES,
    PICTURE_SHARED,
    PICTURE_OWN,
    PICTURE_OTHER,
    PICTURE_PARTS,
};

struct picture {
    uint64_t at_ns, rss_bytes, pss_bytes, swap_bytes;
    uint64_t bytes[PICTURE_PARTS];     // their sum is rss_bytes
    uint64_t live_bytes, live_blocks;  // as requested, resident or not
    uint64_t heap_bytes;               // resident: the sum of the first five
    uint64_t slack_bytes;              // resident or not
    uint64_t chunk_bytes, top_bytes;   // of glibc's free memory, resident or not
    uint64_t free_resident_bytes;      // of both
    uint32_t arena_count;              // 0: not known
    uint32_t stack_count;
    bool is_sampled;    // what is live is an estimate
    bool is_cut;        // there are more free chunks than were counted
    bool is_live_more;  // more is live than resident: the heap is one part, PICTURE_LIVE
    bool is_free_part;  // PICTURE_FREE is known; else it is within PICTURE_REST
    bool is_slack_part, is_mapped_part;  // the same of these two
};

// The picture at CAIRN_PICTURE_AT_PEAK or CAIRN_PICTURE_LAST; false if there is none.
bool picture_of(const struct recording *recording, size_t index, struct picture *picture);

// "live", "free" and so on, as in JSON.
const char *picture_part_key(enum picture_part part);

#endif
