// SPDX-License-Identifier: Apache-2.0
// A stretch of the recording that is handed out front to back and never taken back.
//
// Taking is one atomic addition; memory is claimed (made to exist) a chunk at a time by the thread
// that first needs it. Threads that need memory of it meanwhile do not wait and claim just what
// they take: what a thousand threads need is claimed once, not a thousand times. Claiming twice is
// harmless. A region that is full, or whose chunk could not be claimed, stays so: `take` returns
// NULL.
#ifndef RUNTIME_SYS_REGION_H
#define RUNTIME_SYS_REGION_H

#include <stdbool.h>
#include <stdint.h>

struct region {
    uint8_t *base;
    uint64_t capacity_bytes;  // (atomic)
    uint64_t chunk_bytes;     // most that is claimed ahead, a multiple of the page size
    uint64_t *used_bytes;     // (atomic) in the recording's section table
    uint64_t *space_bytes;    // there too: how much of it is mapped
    uint64_t claimed_bytes;   // (atomic) usable from the start on
    uint64_t ahead_bytes;     // (atomic) up to here nothing need be claimed, nor for others' sake
    uint64_t behind_bytes;    // (atomic) 0: nobody claims; else who needs more than this does not
                              // believe that whoever claims will be done
    uint32_t is_full;         // (atomic)
};

// `bytes` bytes, zeroed; NULL when there are none. Any thread, signal handlers included.
void *region_take(struct region *region, uint64_t bytes);

// Makes the first `end_bytes` bytes usable.
bool region_claim(struct region *region, uint64_t end_bytes);

// The same, and they count as used: for a column that goes along with another one, of which nothing
// is taken otherwise.
bool region_reach(struct region *region, uint64_t end_bytes);

// Gives back the address space beyond what is in use and `headroom_bytes` more: from then on it may
// be the program's. A region without memory stays so.
void region_shrink(struct region *region, uint64_t headroom_bytes);

#endif
