// SPDX-License-Identifier: Apache-2.0
// Chunks in a piece of an arena, found without a walk from the arena's start.
//
// Chunks follow one another, so that one that is known leads to all behind it. Any bytes may look
// like a chunk, but then they lead into the chain or, soon, to what is none. Of all places in the
// piece that lead to its end by chunks alone, the chain that most of them lead into is taken, if it
// goes on behind the piece; in a copy that ends there, also if that is not known.
#ifndef TOOL_GLIBC_RESYNC_H
#define TOOL_GLIBC_RESYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/proc/memory_reader.h"

struct resync {
    const struct memory_reader *memory;  // of the whole arena
    uint64_t start, end;                 // of the piece: multiples of 16, at most RESYNC_BYTES_MAX
    uint64_t range_start, range_end;     // of the stretch of the arena that it is part of
    bool is_main;                        // of what brk moves
    bool is_copy;                        // memory behind the piece may be missing
    uint64_t behind;                     // where the last chunk was known to end; 0: not known
};
enum { RESYNC_BYTES_MAX = 1 << 17 };

struct resync_chunk {
    uint64_t address, size;  // of the chunk, with its header
    bool is_used;            // by the chunk behind it; true if that cannot be read
    bool is_last;            // no block: the end of the arena or of the heap
};

// Where the chunks of a piece begin and end.
struct resync_found {
    uint64_t first, behind;
    bool is_sure;  // of the last one's end
};

// False: no chunk begins in the piece that leads on.
bool resync_find(const struct resync *resync, struct resync_found *found);

// The chunk at an address; false: it is none.
bool resync_read(const struct resync *resync, uint64_t address, struct resync_chunk *chunk);

#endif
