// SPDX-License-Identifier: Apache-2.0
// What each thread of a recording holds, from its own cells and from the frees that other threads
// booked for its blocks.
//
// Cells belong to a slot, which short threads hand on to each other. What the cells of a slot hold
// at the end, or held at the peak, is given to its threads from the last one backwards, to each no
// more than it allocated: exact for a slot with one thread, an estimate for others. Of samples each
// gets a part in proportion to what it allocated.
#ifndef TOOL_MODEL_THREADS_H
#define TOOL_MODEL_THREADS_H

#include "tool/model/profile.h"

// One more than the highest slot number in use.
size_t threads_slot_limit(const struct recording *recording);

// What the blocks of a slot's threads add up to.
struct slot_bytes {
    int64_t exit, peak;
    struct estimate exit_estimate, peak_estimate;
    uint32_t sharing_count;    // threads of the slot ...
    uint64_t allocated_bytes;  // ... and what those allocated that have no share yet
    // By its cells; of a checkpoint more than its threads say, which were written before them.
    uint64_t cell_calls, cell_bytes;
    uint64_t thread_calls, thread_bytes;
};

// Fills threads and their sums. `left` has `slot_limit` entries, what the cells of each slot hold,
// and is used up. `slot_count` becomes the number of slots with threads: as many were alive at the
// same time. False without memory.
bool threads_build(struct profile *profile, struct slot_bytes *left, size_t slot_limit,
                   size_t *slot_count);

// Threads of one name as one entry, in the order of their first; folded_count says how many more.
// Its estimates are those of all slots that its threads had; a slot that threads of other names
// had too counts as a whole, so that no interval is too narrow. Room for profile->thread_count
// entries, how many there are in `count`. False without memory.
bool threads_group(const struct profile *profile, struct profile_thread *groups, size_t *count);

#endif
