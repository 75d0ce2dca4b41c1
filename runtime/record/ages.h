// SPDX-License-Identifier: Apache-2.0
// How old blocks are when they are freed, for --ages: beside the slot of each live block lies when
// it was allocated (live.h), in allocations of its thread and in milliseconds of a clock that the
// tool moves in the control line every few of them. A system call or a look at the processor's
// counter would cost more than the whole event. Without the tool, or once it stands still, the
// kernel's coarse clock is asked.
#ifndef RUNTIME_RECORD_AGES_H
#define RUNTIME_RECORD_AGES_H

#include "runtime/live/live.h"
#include "runtime/stack/block_stats.h"
#include "runtime/thread/gate.h"

struct ages {
    const uint32_t *clock_ms;  // (atomic) the tool's, counted from `start_ms`; never NULL
    uint32_t start_ms;
    bool has_clock;  // and it goes; EVENT_AGED takes this for granted
};

extern HIDDEN struct ages ages;

// The recording begins, also that of a forked child: its births go on.
void ages_open(const struct cairn_header *header, bool has_tool);

// Now and then: false once the tool's clock stands still.
bool ages_check_clock(void);

// A block was entered in the live map; a block of cell `id`, just taken out of it, is freed by this
// thread. For every case.
void ages_begin(struct thread *thread, const void *block);
void ages_end(struct thread *thread, const void *block, uint32_t id);

// The parts of the fast paths: a block that is entered, and one of this thread's own cell that is
// freed; false: nothing was done, ages_end knows the case.
ALWAYS_INLINE uint32_t ages_now_by_tool(void) {
    return __atomic_load_n(ages.clock_ms, __ATOMIC_RELAXED) + ages.start_ms;
}
ALWAYS_INLINE void ages_note_birth(struct thread *thread, struct birth *birth) {
    *birth = (struct birth){++thread->call_count, ages_now_by_tool()};
}
ALWAYS_INLINE bool ages_count(const struct thread *thread, uint32_t id, const struct birth *birth) {
    const struct cairn_cell_rare *rare = cell_rare(id);
    uint32_t number = rare ? rare->ages : 0;
    uint32_t calls = thread->call_count - birth->call, ms = ages_now_by_tool() - birth->ms;
    if (unlikely(!number) || unlikely((calls | ms) > USE_AGE_MOST)) return false;
    struct cairn_ages *entry = block_stats_ages(number);
    block_stats_age_count(entry->calls, calls);
    block_stats_age_count(entry->ms, ms);
    return true;
}

#endif
