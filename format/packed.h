// SPDX-License-Identifier: Apache-2.0
// The packed form of a recording: a compact file whose sections are compressed. Only the tool
// writes it, when it has put names in; a reader of version 2 refuses it by its number.
//
// A section is a sequence of blocks, each a struct cairn_packed_block and its stored bytes. In the
// section table used_bytes is what all of them take in the file and capacity_bytes what they give.
#ifndef CAIRN_PACKED_H
#define CAIRN_PACKED_H

#include <stdint.h>

#define CAIRN_VERSION_PACKED 3u
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
