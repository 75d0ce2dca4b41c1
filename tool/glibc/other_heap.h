// SPDX-License-Identifier: Apache-2.0
// Says more of another allocator's heap than its blocks, which are among the chunks of
// tool/glibc/chunks.h: its memory, what it keeps by size class, and what of it would go back.
#ifndef TOOL_GLIBC_OTHER_HEAP_H
#define TOOL_GLIBC_OTHER_HEAP_H

#include "tool/base/array.h"
#include "tool/base/spans.h"

// Blocks of one size that lie on pages of their own.
struct other_class {
    uint64_t size;                // of a block
    uint64_t page_bytes;          // of their pages; what is beyond the blocks is left over
    uint64_t used, cached, free;  // blocks: handed out, in threads' caches, beside those
    uint64_t moving;              // that threads may be moving: any of these
};

struct other_heap {
    const char *name;     // of the allocator; NULL: there is none
    struct spans memory;  // its pages and its own tables: nothing there refers to a block
    uint64_t page_bytes;  // of pages with blocks
    uint64_t dirty_bytes, muzzy_bytes;  // free pages: kept, or the kernel's if it wants them
    uint64_t free_page_bytes;           // nobody knows which of them are kept
    uint64_t retained_bytes;            // address space without pages
    uint64_t unknown_caches;            // threads that may have caches which were not read
    uint64_t busy_threads;              // that may be within a call: a block of each may be moving
    uint64_t moving_blocks;             // that they may be moving in chains: in use or free
    ARRAY(struct other_class) classes;  // ascending by size
    struct spans free_pages;            // on which no block lies
    struct spans emptied;               // pages on which only free blocks lie, some in caches
    struct spans asked;                 // what goes back if the program asks the allocator for it
    uint64_t asked_from_ms;             // all of it from then on (CLOCK_MONOTONIC); 0: at any time
};

// Returns the class of that size, a new one if there is none. NULL without memory.
struct other_class *other_heap_class(struct other_heap *other, uint64_t size);

// To be called when all is there.
void other_heap_settle(struct other_heap *other);
void other_heap_free(struct other_heap *other);

#endif
