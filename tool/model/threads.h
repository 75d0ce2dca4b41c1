// SPDX-License-Identifier: Apache-2.0
// What each thread of a recording holds, from its own cells and from the frees that other threads
// booked for its blocks.
//
// Cells belong to a slot, which short threads hand on to each other: its account. What single ones
// of them hold is known where nothing is left, where all of it is, or where one alone allocated. Of
// others only the sum is: they share an account, and are one row (threads_rows).
#ifndef TOOL_MODEL_THREADS_H
#define TOOL_MODEL_THREADS_H

#include <stddef.h>

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
    int64_t all_exit, all_peak;
    uint64_t all_allocated_bytes;
};

// Fills threads and their sums. `left` has `slot_limit` entries, what the cells of each slot hold,
// and is used up. `slot_count` becomes the number of slots with threads: as many were alive at the
// same time. False without memory.
bool threads_build(struct profile *profile, struct slot_bytes *left, size_t slot_limit,
                   size_t *slot_count);

// The rows that may be shown of threads: a row for each whose bytes are known, one for those that
// share an account, in the order of their first.
struct thread_row {
    struct profile_thread sums;  // the first thread's name and number; its bytes are known
    char last_name[sizeof((struct profile_thread *)NULL)->name];  // of those that share, if others
    bool has_other_names;                                         // they have different names
    uint32_t sharing_count;  // threads that share the account; 0: it is one thread
    uint32_t number;         // for who sorts them
};

enum { THREAD_TEXT_BYTES = 192 };

// "worker", "job0 ... job39 (40 threads share an account)", not escaped.
void thread_row_text(const struct thread_row *row, char *out, size_t size);

// Room for profile->thread_count rows, how many there are in `count`. False without memory.
bool threads_rows(const struct profile *profile, struct thread_row *rows, size_t *count);

// The same with threads of one name added up, by folded_count. Estimates are those of all slots
// that they had; a slot that threads of other names had too counts as a whole, so that no interval
// is too narrow.
bool threads_group(const struct profile *profile, struct thread_row *groups, size_t *count);

#endif
