// SPDX-License-Identifier: Apache-2.0
// What `cairn core` prints about glibc's heap in a core, recorded or not.
#ifndef TOOL_CMDS_CORE_HEAP_H
#define TOOL_CMDS_CORE_HEAP_H

#include "tool/core/glibc.h"

// A line a chunk: "Used allocation at HEX of size HEX" or "Free allocation at ...", then the count.
void core_print_chunks(const struct core_heap *heap, bool are_free);
// "N allocations use 0xHEX (N) bytes." or "N free blocks ...".
void core_print_chunk_count(const struct core_heap *heap, bool are_free);
// Blocks in use and free by size, and what is free where.
void core_print_heap(const struct core_heap *heap);

#endif
