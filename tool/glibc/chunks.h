// SPDX-License-Identifier: Apache-2.0
// The chunks of glibc's malloc on 64-bit machines, as malloc/malloc.c of its sources lays them out:
// what a chunk's first words say, and the whole heap of a process that does not run, every chunk in
// use or free, of the main arena, of threads' arenas and with mappings of their own.
#ifndef TOOL_GLIBC_CHUNKS_H
#define TOOL_GLIBC_CHUNKS_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/glibc/other_heap.h"
#include "tool/proc/memory_reader.h"

// A chunk begins with two words: the size of the one before if that is free, and its own size with
// flags in the lowest three bits. The block that malloc returns follows.
enum {
    CHUNK_HEADER_BYTES = 16,
    CHUNK_FLAGS = 7,
    CHUNK_USED_BEFORE = 1,  // the chunk before is in use
    CHUNK_HAS_MAPPING = 2,  // of its own
};
// The usual least size of a block that gets a mapping of its own (mallopt(3), M_MMAP_THRESHOLD).
#define CHUNK_MAPPED_LEAST (128u << 10)

// Bytes of the chunk with a mapping of its own that has these first words, 0 if it is none: whole
// pages of `page_bytes`, at least `least` and at most `room` bytes. The kernel joins neighbours, so
// that one chunk may follow another in a mapping, or other memory.
static inline uint64_t chunk_mapped_bytes(const uint64_t words[2], uint64_t page_bytes,
                                          uint64_t least, uint64_t room) {
    const uint64_t size = words[1] & ~(uint64_t)CHUNK_FLAGS;
    bool is_mapped = !words[0] && (words[1] & CHUNK_FLAGS) == CHUNK_HAS_MAPPING;
    return is_mapped && size >= least && size % page_bytes == 0 && size <= room ? size : 0;
}

enum chunk_kind {
    CHUNK_USED,
    CHUNK_MAPPED,  // in use, with a mapping of its own
    CHUNK_BINNED,  // free, in one of the bins
    CHUNK_FAST,    // free, in a fastbin
    CHUNK_CACHED,  // free, in a thread's cache
};

// A heap may have hundreds of millions of them: twelve bytes each. A place beyond
// CHUNK_ADDRESS_MOST, where no process has memory, or a size above CHUNK_SIZE_MOST is no block's.
struct glibc_chunk {
    uint64_t address : 50;  // that malloc returned
    uint64_t size : 43;     // usable bytes
    enum chunk_kind kind : 3;
} __attribute__((packed, aligned(4)));

#define CHUNK_ADDRESS_MOST (1ull << 49)
#define CHUNK_SIZE_MOST (1ull << 42)

// Memory that an arena took from the system: what brk moves, or a heap of a thread's arena.
struct glibc_range {
    uint64_t start, end;
    uint64_t top;    // where the end that was never handed out begins; `end`: there is none
    uint64_t arena;  // address of its arena, which ranges have in common
    bool is_main;
    uint64_t first;  // where its chunks begin
};

struct glibc_heap {
    ARRAY(struct glibc_chunk) chunks;  // ascending by address
    ARRAY(struct glibc_range) ranges;  // ascending by address
    uint64_t arena_count;
    uint64_t top_bytes;       // free at the ends of arenas, not in chunks
    uint64_t broken_count;    // stretches that were left at a chunk that makes no sense
    struct other_heap other;  // another allocator's, whose blocks are among the chunks
};

bool chunk_is_free(const struct glibc_chunk *chunk);

// False if there is no heap of glibc's in the memory, or without memory. The view's reader must
// have `piece`.
bool glibc_heap_read(const struct memory_view *view, struct glibc_heap *heap, struct error *error);
void glibc_heap_free(struct glibc_heap *heap);

// Moves the chunks of another allocator's heap, and what it is, to those of the heap. False without
// memory: then both are as before.
bool glibc_heap_join(struct glibc_heap *heap, struct glibc_heap *other);

// The chunk whose block the address lies in (also that of a block of no bytes), or NULL.
const struct glibc_chunk *glibc_chunk_of(const struct glibc_heap *heap, uint64_t address);

#endif
