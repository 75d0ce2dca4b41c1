// SPDX-License-Identifier: Apache-2.0
// Reads mimalloc's heap from outside: of version 2.0.9 without its secure and debug modes, on
// 64-bit machines, as its header mimalloc-types.h lays it out.
//
//     segment  32 MiB at a multiple of that, or more for one huge block: a header, then a record of
//              80 bytes for each slice of 64 KiB
//     page     slices that blocks of one size lie on: how many there are, how many are used, and
//              lists of free ones (two of the owner's, one of what other threads gave back)
//     heap     of a thread: a list of blocks that others gave back to it
//
// Nothing is found by names, so stripped and linked-in copies are read too. A segment is believed
// if its cookie fits its address as that of every other one does, and pages whose lists have as
// many blocks as the page counts; each list has to stay in its page, on whole blocks.
#ifndef TOOL_MIMALLOC_HEAP_H
#define TOOL_MIMALLOC_HEAP_H

#include "tool/glibc/chunks.h"
#include "tool/proc/memory_reader.h"

enum mimalloc_finding {
    MIMALLOC_NONE,
    MIMALLOC_FOUND,
    MIMALLOC_FAILED,  // no memory
};

// Adds each block, used or free, to the heap, which is glibc's so far, and fills in `heap->other`.
// The heap stays as it was if nothing is found or there is no memory. A block that was asked for
// with an alignment may be used from a later address on than its first.
enum mimalloc_finding mimalloc_heap_add(const struct memory_view *view, struct glibc_heap *heap);

// True if a segment begins at `address`.
bool mimalloc_is_segment(const struct memory_reader *memory, uint64_t address);

#define MIMALLOC_SEGMENT_BYTES (UINT64_C(32) << 20)

#endif
