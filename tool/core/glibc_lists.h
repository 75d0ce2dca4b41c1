// SPDX-License-Identifier: Apache-2.0
// Free chunks that glibc keeps in single-linked lists and leaves marked as in use: fastbins, and
// each thread's cache (since 2.26). From 2.32 on a link is XORed with its own address / 4096.
#ifndef TOOL_CORE_GLIBC_LISTS_H
#define TOOL_CORE_GLIBC_LISTS_H

#include "tool/core/glibc.h"

// Marks the chunks in an arena's fastbins, which lie at that address; the heap's chunks are sorted.
void glibc_mark_fast(const struct core_image *core, struct core_heap *heap, uint64_t fastbins);

// Marks those in threads' caches. A cache is a block of a certain size on the heap, known by its
// counts, which are those of its lists.
void glibc_mark_cached(const struct core_image *core, struct core_heap *heap);

#endif
