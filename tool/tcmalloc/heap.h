// SPDX-License-Identifier: Apache-2.0
// The blocks of tcmalloc's heap (gperftools 2.8 to 2.18), in the form of glibc's: added to what is
// known of that.
//
// The page map leads to every span. A span is believed if its first and last page lead back to it,
// and one of small blocks if as many of its blocks are free as its count leaves, but for those that
// a thread is taking out of it or putting back. Free are those in its list, in a chain on its way
// between threads, in a thread's cache, or in a chain that a thread moves (chains.h); each list has
// to have as many blocks as it counts, on whole blocks of its class. The block of a call that a
// thread is in may count as in use.
#ifndef TOOL_TCMALLOC_HEAP_H
#define TOOL_TCMALLOC_HEAP_H

#include "tool/base/spans.h"
#include "tool/glibc/chunks.h"
#include "tool/proc/memory_reader.h"
#include "tool/tcmalloc/chains.h"

enum tcmalloc_finding {
    TCMALLOC_NONE,
    TCMALLOC_FOUND,
    TCMALLOC_FAILED,  // no memory
};

struct tcmalloc_source {
    const struct memory_view *view;
    const struct spans *data;  // of modules, settled
    const struct tcmalloc_thread *threads;
    size_t thread_count;
};

// The heap stays as it was if nothing is found or there is no memory.
enum tcmalloc_finding tcmalloc_heap_add(const struct tcmalloc_source *source,
                                        struct glibc_heap *heap);

#endif
