// SPDX-License-Identifier: Apache-2.0
// What each thread of a recording holds, from its own cells and from the frees that other threads
// booked for its blocks.
//
// Cells belong to a slot, which short threads hand on to each other. What the cells of a slot hold
// at the end is given to its threads from the last one backwards, to each no more than it
// allocated: exact for a slot with one thread, an estimate for others.
#ifndef TOOL_MODEL_THREADS_H
#define TOOL_MODEL_THREADS_H

#include "tool/model/profile.h"

// One more than the highest slot number in use.
size_t threads_slot_limit(const struct recording *recording);

// Fills threads and their sums; `slot_exit_bytes` has `slot_limit` values. `slot_count` becomes the
// number of slots with threads: as many were alive at the same time. False without memory.
bool threads_build(struct profile *profile, const int64_t *slot_exit_bytes, size_t slot_limit,
                   size_t *slot_count);

#endif
