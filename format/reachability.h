// SPDX-License-Identifier: Apache-2.0
// What a process still had in use when it ended, and what of it could be reached: the tool marks it
// from outside, in a copy of the memory made while the process waits at its end, and puts both
// sections into the file (cairn run --unreachable). Without that there is neither section.
#ifndef CAIRN_REACHABILITY_H
#define CAIRN_REACHABILITY_H

#include <stdint.h>

#define CAIRN_REASON_BYTES 192u

// CAIRN_SECTION_REACHABILITY, one. Directly lost: no other lost block refers to it; of a ring that
// nothing else leads to one block. Indirectly lost: all other blocks that nothing leads to.
struct cairn_reachability {
    uint32_t is_known;
    uint32_t reserved;
    uint64_t pause_ns;      // the process waited so long
    uint64_t copied_bytes;  // of its memory
    uint64_t direct_blocks, direct_bytes;
    uint64_t indirect_blocks, indirect_bytes;
    uint64_t reachable_blocks, reachable_bytes;
    char reason[CAIRN_REASON_BYTES];  // why it is not known; ends in NUL
};

// CAIRN_SECTION_LOST, one for each cell with lost blocks. An indirectly lost block counts for the
// directly lost one that alone leads to it; if several do, for its own cell, without a direct one.
struct cairn_lost {
    uint32_t cell;  // CAIRN_CELL_OTHER: not recorded
    uint32_t reserved;
    uint64_t direct_blocks, direct_bytes;
    uint64_t below_blocks, below_bytes;
};

_Static_assert(sizeof(struct cairn_reachability) == 264, "layout");
_Static_assert(sizeof(struct cairn_lost) == 40, "layout");

#endif
