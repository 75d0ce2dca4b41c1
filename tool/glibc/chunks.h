// SPDX-License-Identifier: Apache-2.0
// The chunks of glibc's malloc on 64-bit machines, as malloc/malloc.c of its sources lays them out:
// what a chunk's first words say, and the whole heap of a process that does not run, every chunk in
// use or free, of the main arena, of threads' arenas and with mappings of their own.
#ifndef TOOL_GLIBC_CHUNKS_H
#define TOOL_GLIBC_CHUNKS_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/glibc/arenas.h"
#include "tool/glibc/other_heap.h"
#include "tool/proc/memory_reader.h"

// A chunk begins with two words: the size of the one before if that is free, and its own size with
// flags in the lowest three bits. The block that malloc returns follows.
enum {
    CHUNK_HEADER_BYTES = 16,
    CHUNK_LEAST_BYTES = 32,
    CHUNK_FENCE_BYTES = 16,   // of the last chunk of a heap that is not its arena's newest
    CHUNK_FENCE_ROOM = 4096,  // at the end of a heap, where that chunk is
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

#define CHUNK_BROKEN UINT64_MAX

// Returns the bytes of the chunk at `at` by its size word, in memory that chunks fill up to `end`.
// 0: it ends a heap; CHUNK_BROKEN: the word makes no sense there.
static inline uint64_t chunk_walk_bytes(uint64_t word, uint64_t at, uint64_t end) {
    const uint64_t size = word & ~(uint64_t)CHUNK_FLAGS;
    bool is_near_end = at + CHUNK_HEADER_BYTES + sizeof word >= end - CHUNK_FENCE_ROOM;
    if (size == CHUNK_FENCE_BYTES || (size < CHUNK_FENCE_BYTES && is_near_end)) return 0;
    bool is_sound = size >= CHUNK_LEAST_BYTES && size % CHUNK_HEADER_BYTES == 0 && size <= end - at;
    return is_sound ? size : CHUNK_BROKEN;
}

// The block of a thread's cache has a certain size. Two forms: counts of 2 bytes (since 2.30) or 1,
// one a bin, and then a link to the first block of each bin.
enum { CHUNK_CACHE_BINS = 64, CHUNK_CACHE_FORMS = 2 };
struct chunk_cache_form {
    uint64_t usable_bytes;  // of its block; CHUNK_HEADER_BYTES more if what was left was too small
                            // for a chunk
    unsigned count_bytes;
};
extern const struct chunk_cache_form chunk_cache_forms[CHUNK_CACHE_FORMS];

static inline bool chunk_may_be_cache(uint64_t usable, const struct chunk_cache_form *form) {
    return usable == form->usable_bytes || usable == form->usable_bytes + CHUNK_HEADER_BYTES;
}

enum chunk_kind {
    CHUNK_USED,
    CHUNK_MAPPED,  // in use, with a mapping of its own
    CHUNK_MOVING,  // in a list that a thread within a call may be changing: in use or free
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

// Says what is surely so: of a moving one neither is.
bool chunk_is_free(const struct glibc_chunk *chunk);
bool chunk_is_used(const struct glibc_chunk *chunk);

// False if there is no heap of glibc's in the memory, or without memory. The view's reader must
// have `piece`.
bool glibc_heap_read(const struct memory_view *view, struct glibc_heap *heap, struct error *error);
void glibc_heap_free(struct glibc_heap *heap);

// Finds the ranges alone, and calls `see` for each arena that they are of. `arenas` is zero, or has
// what was found before, where it is looked for again. False if there is none, if `see` was, or
// without memory; to be freed then too.
bool glibc_heap_ranges(const struct memory_view *view, struct arenas *arenas,
                       struct glibc_heap *heap,
                       bool (*see)(void *context, const struct arena *arena), void *context);

// Moves the chunks of another allocator's heap, and what it is, to those of the heap. False without
// memory: then both are as before.
bool glibc_heap_join(struct glibc_heap *heap, struct glibc_heap *other);

// The chunk whose block the address lies in (also that of a block of no bytes), or NULL.
const struct glibc_chunk *glibc_chunk_of(const struct glibc_heap *heap, uint64_t address);

#endif
