// SPDX-License-Identifier: Apache-2.0
// What of the blocks of a process or core dump was of no use, in the file that says who kept them
// (cairn core SUBJECT save FILE). Sums alone: nothing of what was in the blocks.
#ifndef CAIRN_WASTE_H
#define CAIRN_WASTE_H

#include <stdint.h>

#define CAIRN_WASTE_LABEL_BYTES 192u

// CAIRN_SECTION_WASTE, one. Each byte of a block is of the first kind that holds.
struct cairn_waste {
    uint64_t held_bytes, held_blocks;  // slack among the bytes
    uint64_t untouched_bytes;          // on pages that were not there
    uint64_t zero_bytes;               // of blocks of zeros
    uint64_t duplicate_bytes;          // of blocks equal to another
    uint64_t tail_bytes;               // behind the last byte that is not zero
    uint64_t slack_bytes;              // beyond what was asked for
    uint64_t sparse_bytes;             // beside few bytes on resident pages; in no block
    uint64_t copies, contents;         // blocks that are duplicates, and different contents
    uint64_t string_bytes, string_copies, strings;  // of them: those that are text
    // Whose blocks most of it is of (without untouched bytes), and most of the strings: functions.
    // Text, ends in NUL; "": nobody's.
    char most[CAIRN_WASTE_LABEL_BYTES], most_strings[CAIRN_WASTE_LABEL_BYTES];
};

_Static_assert(sizeof(struct cairn_waste) == 488, "layout");

#endif
