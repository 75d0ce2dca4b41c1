// SPDX-License-Identifier: Apache-2.0
// Heaps of other allocators than glibc's in a core dump or the copy of a process.
#ifndef TOOL_HEAP_OTHER_HEAPS_H
#define TOOL_HEAP_OTHER_HEAPS_H

#include <sys/types.h>

#include "tool/glibc/chunks.h"
#include "tool/heap/image.h"
#include "tool/heap/stopped.h"

// The allocators beside glibc's whose heaps are read.
#define OTHER_HEAPS_READ "jemalloc 5.2 or 5.3, mimalloc 2.0.9 or tcmalloc (gperftools 2.8 to 2.18)"

// Adds the blocks of one of those to the heap, if
// one is there, and says so in `heap->other`. False without memory.
bool core_add_other_heaps(const struct core_image *core, struct glibc_heap *heap);

// Returns false, with an error that names the allocator whose heap was not read, by its library;
// the error stays where none is known.
bool core_refuse_heap(const struct core_image *core, struct error *error);

// Returns how much of such memory is resident. `live` NULL: it is of a core, of which what is there
// counts.
uint64_t other_heap_there(const struct core_image *core, const struct stopped_image *live,
                          const struct spans *spans);
// Returns what of blocks in use is.
uint64_t other_heap_used(const struct core_image *core, const struct stopped_image *live,
                         const struct glibc_heap *heap);

// True if a running process has such a heap. It is not stopped; false too if it cannot be read.
bool process_has_other_heap(pid_t pid);

#endif
