// SPDX-License-Identifier: Apache-2.0
// An allocator by name (--wrap) over time, in the recording (struct cairn_heap_points): each change
// of what it holds is noted, so that the lowest and the highest value of an interval are exact.
//
// Whoever notes holds the lock of the heap (pool.h, arena.h).
#ifndef RUNTIME_API_HEAP_POINTS_H
#define RUNTIME_API_HEAP_POINTS_H

#include <stdint.h>

#include "runtime/sys/region.h"

struct cairn_point;

// Where the heaps' points are, in the recording that is open now.
struct region *heap_points_region(void);

// The points of a heap, by its scope; 0: there is no room for them.
uint32_t heap_points_make(uint32_t scope);

// The heap is so from now on (`now`: its last bytes and blocks, and what was allocated so far).
// Number 0: nothing is done. `now_ns`: since the start.
void heap_points_note(uint32_t number, const struct cairn_point *now, uint64_t now_ns);

// In a forked child: nothing was noted so far.
void heap_points_inherit(void);

#endif
