// SPDX-License-Identifier: Apache-2.0
// Heaps of other allocators than glibc's in a core dump or the copy of a process.
#ifndef TOOL_HEAP_OTHER_HEAPS_H
#define TOOL_HEAP_OTHER_HEAPS_H

#include <sys/types.h>

#include "tool/glibc/chunks.h"
#include "tool/heap/image.h"
#include "tool/heap/stopped.h"

// Adds the blocks of jemalloc 5.3.0 or mimalloc 2.0.9 to the heap, if one is there, and says so in
// `heap->other`. False without memory.
bool core_add_other_heaps(const struct core_image *core, struct glibc_heap *heap);
// Returns how much of another allocator's memory is resident; `used_bytes` gets what blocks in use
// take of it. `live` NULL: it is of a core, of which all that is there counts.
uint64_t other_heap_resident(const struct glibc_heap *heap, const struct stopped_image *live,
                             uint64_t *used_bytes);

// True if a running process has such a heap. It is not stopped; false too if it cannot be read.
bool process_has_other_heap(pid_t pid);

#endif
