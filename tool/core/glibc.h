// SPDX-License-Identifier: Apache-2.0
// The heap of glibc's malloc in a core dump, recorded or not: every chunk, in use or free, of the
// main arena, of threads' arenas and with mappings of their own.
//
// The layout is glibc's own on 64-bit machines, with a word more at the start of arenas since 2.27:
// malloc/malloc.c of its sources explains it.
// Nothing in a core says where the arenas are; the first one is found by its empty bins, whose
// words point to themselves, and the others follow in a circle.
#ifndef TOOL_CORE_GLIBC_H
#define TOOL_CORE_GLIBC_H

#include "tool/core/image.h"

enum chunk_kind {
    CHUNK_USED,
    CHUNK_MAPPED,  // in use, with a mapping of its own
    CHUNK_BINNED,  // free, in one of the bins
    CHUNK_FAST,    // free, in a fastbin
    CHUNK_CACHED,  // free, in a thread's cache
};

// A core may have hundreds of millions of them: twelve bytes each. A place beyond
// CORE_ADDRESS_MOST, where no process has memory, or a size above CORE_SIZE_MOST is no block's.
struct core_chunk {
    uint64_t address : 50;  // that malloc returned
    uint64_t size : 43;     // usable bytes
    enum chunk_kind kind : 3;
} __attribute__((packed, aligned(4)));

#define CORE_ADDRESS_MOST (1ull << 49)
#define CORE_SIZE_MOST (1ull << 42)

#define CORE_ARENA_BYTES 2200u  // glibc's struct malloc_state

// Memory that an arena took from the system: what brk moves, or a heap of a thread's arena.
struct core_heap_range {
    uint64_t start, end;
    uint64_t top;    // where the end that was never handed out begins; `end`: there is none
    uint64_t arena;  // address of its arena, which ranges have in common
    bool is_main;
    uint64_t first;  // where its chunks begin
};

struct core_heap {
    ARRAY(struct core_chunk) chunks;       // ascending by address
    ARRAY(struct core_heap_range) ranges;  // ascending by address
    uint64_t arena_count;
    uint64_t top_bytes;     // free at the ends of arenas, not in chunks
    uint64_t broken_count;  // stretches that were left at a chunk that makes no sense
};

bool chunk_is_free(const struct core_chunk *chunk);

// False if there is no heap of glibc's in the core, or without memory.
bool core_read_heap(const struct core_image *core, struct core_heap *heap, struct error *error);
void core_free_heap(struct core_heap *heap);

// The chunk whose block the address lies in (also that of a block of no bytes), or NULL.
const struct core_chunk *core_chunk_of(const struct core_heap *heap, uint64_t address);

#endif
