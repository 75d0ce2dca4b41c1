// SPDX-License-Identifier: Apache-2.0
// The packed form of a recording: a compact file whose sections are compressed. Only the tool
// writes it, when it has put names in; readers of the other forms refuse it by its number.
//
// A section is a sequence of blocks, each a struct cairn_packed_block and its stored bytes. In the
// section table used_bytes is what all of them take in the file and capacity_bytes what they give.
#ifndef CAIRN_PACKED_H
#define CAIRN_PACKED_H

#include <stdint.h>

#include "format/format.h"

#define CAIRN_VERSION_PACKED 9u

// Cells of recordings of these versions were in three parts (tool/model/cells.c); all else is as in
// the present ones, but that the heads of records have two words, as in the versions 4 and 5 too.
#define CAIRN_VERSION_OLDER 2u
#define CAIRN_VERSION_OLDER_PACKED 3u

// Blocks of cells had so many in recordings of the versions up to this one.
#define CAIRN_VERSION_WIDE 7u
#define CAIRN_CELL_BLOCK_WIDE 64u

// Of a version from CAIRN_VERSION_OLDER to CAIRN_VERSION_PACKED: packed forms have the odd numbers.
static inline _Bool cairn_is_packed(uint32_t version) {
    return version & 1;
}
// The number of the packed form of a recording of this one.
static inline uint32_t cairn_version_packed(uint32_t version) {
    return version | 1;
}
static inline _Bool cairn_is_older(uint32_t version) {
    return version == CAIRN_VERSION_OLDER || version == CAIRN_VERSION_OLDER_PACKED;
}
static inline uint32_t cairn_cell_block(uint32_t version) {
    return version <= CAIRN_VERSION_WIDE ? CAIRN_CELL_BLOCK_WIDE : CAIRN_CELL_BLOCK;
}
#define CAIRN_PACKED_BLOCK_BYTES (512u << 10)  // most that one block gives

// Entries of this size and more are turned before they are compressed, in blocks of whole entries:
// the first byte of every entry comes first, then the second of every entry, and so on. Counters of
// neighbours are alike in their upper bytes.
#define CAIRN_PACKED_TURNED 8u

// stored_bytes is 0: the block is zeros. It is plain_bytes: they are stored as they are, and not
// turned. Else: a frame of Zstandard (RFC 8878).
struct cairn_packed_block {
    uint32_t stored_bytes;
    uint32_t plain_bytes;  // 1 to CAIRN_PACKED_BLOCK_BYTES
};

_Static_assert(sizeof(struct cairn_packed_block) == 8, "layout");

#endif
