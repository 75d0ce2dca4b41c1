// SPDX-License-Identifier: Apache-2.0
// The heads of a heap's chunks: all that must be kept to know which blocks it has, and what the
// first word of each is. Sixteen bytes a chunk, however large chunks are, taken while the process
// stands, a piece of its memory after the other; what lies between the heads reads as zeros. Kept
// as they were are besides:
//
//     the links of the first and last chunk of each bin, by which arenas are known
//     threads' caches, which are blocks
//
// The heap is then read as if its memory was there (chunks.h).
#ifndef TOOL_GLIBC_HEADS_H
#define TOOL_GLIBC_HEADS_H

#include "tool/base/array.h"
#include "tool/glibc/arenas.h"
#include "tool/proc/memory_reader.h"

struct heap_head {
    uint64_t size;   // with its flags
    uint64_t first;  // word of its block
};

// Chunks without a gap.
struct head_stretch {
    uint64_t start;      // of the first
    uint64_t end;        // behind the last word that is known
    uint64_t top;        // where they end ...
    uint64_t range_end;  // ... and the memory that the arena took
    size_t first, count;
};

// Memory that is kept as it was.
struct head_run {
    uint64_t address;
    size_t at, bytes;
};

// Zero it, and give it room for heads.
struct heap_heads {
    struct heap_head *items;  // the caller's memory
    size_t count, capacity;
    struct arenas arenas;  // of the heap, which are looked for where they were before
    ARRAY(struct head_stretch) stretches;  // ascending
    ARRAY(struct head_run) runs;           // ascending, apart from each other
    ARRAY(uint8_t) bytes;                  // of runs
    ARRAY(uint64_t) index;                 // addresses of every so many of them
    size_t near;                           // the head that was found last, and its chunk
    uint64_t near_address;
};

// Takes the heads of a heap of glibc's, until their room is full. The view's reader must have
// `piece`. False if there is none in the memory, or without memory.
bool heap_heads_take(struct heap_heads *heads, const struct memory_view *view);

// Makes them ready to be read. False without memory.
bool heap_heads_settle(struct heap_heads *heads);

// Fills in what is known of the `size` bytes from `address` on, which lie in a stretch at first;
// returns how many do. 0: none; `next` is where the next stretch begins then, or UINT64_MAX.
size_t heap_heads_read(struct heap_heads *heads, uint64_t address, void *out, size_t size,
                       uint64_t *next);

void heap_heads_free(struct heap_heads *heads);

#endif
