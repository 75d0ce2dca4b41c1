// SPDX-License-Identifier: Apache-2.0
// The blocks of tcmalloc's heap (gperftools 2.8 to 2.18), in the form of glibc's: added to what is
// known of that.
//
// The page map leads to every span. A span is believed if its first and last page lead back to it,
// and one of small blocks if as many of its blocks are free as its count leaves, but for those that
// a thread is taking out of it or putting back. Blocks that a thread moves count as in use. Free
// are in its list, in a chain on their way between threads, or in a thread's cache; each list has
// to have as many blocks as it counts, on whole blocks of its class.
#ifndef TOOL_TCMALLOC_HEAP_H
#define TOOL_TCMALLOC_HEAP_H

#include "tool/base/spans.h"
#include "tool/glibc/chunks.h"
#include "tool/proc/memory_reader.h"

enum tcmalloc_finding {
    TCMALLOC_NONE,
    TCMALLOC_FOUND,
    TCMALLOC_FAILED,  // no memory
};

// `data`: of modules, settled. The heap stays as it was if nothing is found or there is no memory.
enum tcmalloc_finding tcmalloc_heap_add(const struct memory_view *view, const struct spans *data,
                                        struct glibc_heap *heap);

#endif
