// SPDX-License-Identifier: Apache-2.0
// What a recording holds beyond format.h when blocks have guard bands (cairn run --guard): bytes
// of a known pattern before and behind each block. A band that has changed was written to by
// somebody who went beyond his block.
#ifndef CAIRN_GUARD_H
#define CAIRN_GUARD_H

#include <stdint.h>

#define CAIRN_GUARD_LEAST 16u  // bytes of a band
#define CAIRN_GUARD_MOST 4096u
#define CAIRN_OVERRUN_LIMIT 4096u
#define CAIRN_OVERRUN_SAMPLE 8u

struct cairn_guard {
    uint32_t band_bytes;        // each band's
    uint32_t checks_wanted;     // (atomic) raised by the tool: look at all blocks
    uint32_t checks_done;       // (atomic) the value of checks_wanted that was last served
    uint32_t checks_begun;      // (atomic) the one that is being served, or was last
    uint64_t overrun_blocks;    // (atomic) found so far, those beyond the table included
    uint64_t unguarded_blocks;  // (atomic) got no bands for want of memory
    uint64_t checked_blocks;    // (atomic) live ones that the last look at all of them saw
    uint64_t checked_ns;        // when that was, since the recording's start; 0: never
    uint64_t bands_table;       // in the process: where its table of blocks is (bands.h)
    uint64_t reserved;
};

// When an overrun was found.
enum cairn_overrun_found {
    CAIRN_OVERRUN_AT_FREE = 1,
    CAIRN_OVERRUN_AT_REALLOC = 2,
    CAIRN_OVERRUN_AT_EXIT = 3,
    CAIRN_OVERRUN_ASKED =
        4,  // at a look at all blocks (cairn ctl check), by the process or the tool
};

// One side of a block. Distances count away from the block: 1 is the byte next to it.
struct cairn_overrun_side {
    uint32_t changed_bytes;                // 0: the side is whole
    uint32_t nearest, farthest;            // distances of changed bytes
    uint8_t sample[CAIRN_OVERRUN_SAMPLE];  // what lies there, from the lowest changed byte on
};

// An overrun block. Each is reported once, when it is first seen.
struct cairn_overrun {
    uint32_t found_at;       // enum cairn_overrun_found; set last, 0: not complete
    uint32_t cell;           // the stack that allocated it; 0: not known
    uint32_t found_cell;     // of FREE and REALLOC: the stack that did; 0: not known
    uint32_t found_tid;      // 0: the tool found it
    uint64_t address, size;  // of the block, as the program knows it
    uint64_t found_ns;       // since the recording's start
    struct cairn_overrun_side before, behind;
    uint32_t is_unmet;  // (atomic) the tool found it, and the process has not seen it since
    uint32_t reserved[3];
};

_Static_assert(sizeof(struct cairn_guard) == 64, "layout");
_Static_assert(sizeof(struct cairn_overrun_side) == 20, "layout");
_Static_assert(sizeof(struct cairn_overrun) == 96, "layout");

#endif
