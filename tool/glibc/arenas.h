// SPDX-License-Identifier: Apache-2.0
// The arenas of glibc's malloc, found in memory of any kind (tool/proc/memory_reader.h).
//
// The layout of an arena (struct malloc_state in malloc/malloc.c) since glibc 2.17, in 64-bit
// words:
//
//     … | fastbins (10) | top | last_remainder | bins 1 to 127, two words each | binmap (2) |
//     next | next_free | attached_threads (since 2.23) | system_mem | max_system_mem
//
// A bin is the head of a circle of free chunks: forward and backward, as if they were words 2 and 3
// of a chunk. Nothing says where arenas are: the first one is found by its empty bins, whose words
// point to themselves, and the others follow in a circle.
#ifndef TOOL_GLIBC_ARENAS_H
#define TOOL_GLIBC_ARENAS_H

#include "tool/base/array.h"
#include "tool/proc/memory_reader.h"

enum { ARENA_BINS = 127, ARENA_BIN_WORDS = 2 * ARENA_BINS };

#define ARENA_BYTES 2200u  // of struct malloc_state

struct arena {
    uint64_t address;
    uint64_t bins_address;      // of the first of `bins`
    uint64_t fastbins_address;  // of 10 words
    uint64_t end;               // a heap's first chunk may begin there
    uint64_t top;               // the chunk at the end, which was never handed out
    uint64_t next;              // arena
    uint64_t system_bytes;      // that it took from the system
    uint64_t bins[ARENA_BIN_WORDS];
};

struct arenas {
    ARRAY(uint64_t) addresses;  // of arenas, in their circle
    uint64_t bins_offset;       // of their first bin
};

// Looks for an arena in the memory from `start` to `end` and follows the circle from there.
// `broken_most`: how many bins an arena may have whose first or last chunk does not lead back, as
// when the process was stopped while it changed one. False: there is none, or no memory.
bool arenas_find(struct arenas *arenas, const struct memory_reader *memory, uint64_t start,
                 uint64_t end, unsigned broken_most);
// Follows the circle anew that was found before. False if it is no longer one, or without memory.
bool arenas_find_again(struct arenas *arenas, const struct memory_reader *memory,
                       unsigned broken_most);
void arenas_free(struct arenas *arenas);

// Reads one of them. False if it cannot be read or no longer looks like an arena.
bool arenas_read(const struct arenas *arenas, const struct memory_reader *memory, uint64_t address,
                 unsigned broken_most, struct arena *arena);

// The word that an empty bin has twice: where it would be as a chunk.
static inline uint64_t arena_bin_head(const struct arena *arena, unsigned bin) {
    return arena->bins_address + ((uint64_t)bin * 2 - 2) * sizeof(uint64_t);
}

// An arena of a thread consists of heaps: 64 MiB of address space each, at a multiple of that, of
// which the lower part is accessible. Each begins with these words; in the first heap of an arena
// the arena itself follows.
#define ARENA_HEAP_BYTES (64ull << 20)

struct arena_heap {
    uint64_t arena;             // address
    uint64_t previous;          // heap; 0: this is the first
    uint64_t bytes;             // in use
    uint64_t accessible_bytes;  // at least as many
};

// Whether these words can be the beginning of a heap at `start`, in a mapping that ends at `end`.
bool arena_heap_is_valid(const struct arena_heap *heap, uint64_t start, uint64_t end);

#endif
