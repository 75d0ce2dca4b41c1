// SPDX-License-Identifier: Apache-2.0
// The blocks of jemalloc's heap, in the form of glibc's: added to what is known of that.
#ifndef TOOL_JEMALLOC_HEAP_H
#define TOOL_JEMALLOC_HEAP_H

#include "tool/base/spans.h"
#include "tool/glibc/chunks.h"
#include "tool/jemalloc/extents.h"
#include "tool/proc/memory_reader.h"

struct jemalloc_source {
    const struct memory_view *view;
    const struct jemalloc_place *place;  // where its table is searched
    const uint64_t *thread_pointers;     // of the threads, as far as they are known
    size_t thread_count;
};

// Adds each block, used or free, and fills in `heap->other`. Blocks that jemalloc took for itself
// are not among them. The heap stays as it was if nothing is found or there is no memory.
enum jemalloc_finding jemalloc_heap_add(const struct jemalloc_source *source,
                                        struct glibc_heap *heap);

#endif
