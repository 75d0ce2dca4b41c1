// SPDX-License-Identifier: Apache-2.0
// Finds what the threads' caches of jemalloc 5.2 and 5.3 hold: blocks that the program gave back
// and that their slabs still count as used.
//
// A cache lies in its thread's local memory, below the thread pointer: a word that leads to
// others, then a record of 24 bytes for each size class, with the stack of its blocks between two
// places of one table (cache_bin.h). The table has no gaps, which is how a cache is told from other
// words: at least as many records as there are small classes follow one another in it. In 5.2 a
// record has a count and the end of its stack, and those of large classes lie apart.
#ifndef TOOL_JEMALLOC_CACHES_H
#define TOOL_JEMALLOC_CACHES_H

#include "tool/base/array.h"
#include "tool/base/spans.h"
#include "tool/jemalloc/record.h"
#include "tool/proc/memory_reader.h"

struct jemalloc_caches {
    enum jemalloc_version version;
    ARRAY(uint64_t) blocks;  // addresses; ascending once all were read
    struct spans tables;     // that list them
    uint64_t distance;  // of a thread's cache below its pointer, the same in each; 0: not known
};

// Adds the cache of a thread; `pointer` is its thread pointer, `start` where the memory that this
// lies in begins. True if there is a cache; false too without memory (`is_out_of_memory`).
bool jemalloc_cache_read(const struct memory_reader *memory, uint64_t pointer, uint64_t start,
                         struct jemalloc_caches *caches, bool *is_out_of_memory);

// True if the thread has surely no cache: where the others have theirs is nothing but zeros.
bool jemalloc_cache_is_absent(const struct memory_reader *memory, uint64_t pointer,
                              const struct jemalloc_caches *caches);

// To be called when all were read.
void jemalloc_caches_settle(struct jemalloc_caches *caches);
void jemalloc_caches_free(struct jemalloc_caches *caches);

#endif
