// SPDX-License-Identifier: Apache-2.0
// A block that gets another size, for hooks: it is taken out of the live map before the real
// function is called, since another thread may get its address from then on, and what became of it
// is booked afterwards. `frame` is the hook's.
//
// resize_take and resize_book know every case. What is usual, a block of this process' own map that
// stays a block while nothing but its counters is kept, is done by resize_take_usual and
// resize_book_usual with nothing looked up twice: the thread waits for the real function without
// opening its gate, and everything is looked at before anything is counted. Where they differ from
// the others in a number, tests/promises/resizes.py fails.
#ifndef RUNTIME_RECORD_RESIZE_H
#define RUNTIME_RECORD_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/event.h"

// The block's entry, taken out of the live map.
struct live_block resize_take(void *block, uintptr_t *frame);

// Books what realloc did. It freed the block without a new one if it returned NULL for size 0 (as
// glibc does); NULL for any other size is a failure that left the block as it was.
void resize_book(void *block, struct live_block old, void *result, size_t size, uintptr_t *frame);

// Nothing became of it, and that is no failure either.
void resize_keep(void *block, struct live_block old, uintptr_t *frame);

struct resized {
    void *old_block;        // its address then
    struct live_block old;  // as it was taken
    void *block;            // NULL: freed
    size_t size;
};

// Modes in which events do nothing but count, and no tracer listens.
ALWAYS_INLINE bool resize_is_usual(void) {
    return probes_event.word <= EVENT_TOTALS;
}

// The block's entry is taken, and the thread is INSIDE. False: nothing was done. ..._any knows
// every layout and size.
bool resize_take_any(void *block, struct live_block *old);
ALWAYS_INLINE bool resize_take_usual(void *block, uintptr_t *frame, struct live_block *old) {
    if (unlikely(!resize_is_usual())) return false;
    struct thread *thread = gate_enter_open((uintptr_t)frame);
    if (unlikely(!thread)) return false;
    uint32_t *slot = live_take_slot(&thread->near, (uintptr_t)block, old);
    if (likely(slot && old->id && old->id < cells.fast_limit)) {
        *slot = 0;
    } else if (!resize_take_any(block, old)) {
        gate_leave(thread);
        return false;
    }
    gate_wait(thread, (uintptr_t)frame);
    return true;
}

// The parts of resize_book_usual that are calls; the thread is BUSY. False: nothing was counted.
// ..._unseen: the stack is neither the last one nor the one that is guessed.
// ..._seen: it is the last one, and what it counts in is not as usual.
bool resize_book_unseen(struct thread *thread, struct resized done, uintptr_t *frame,
                        const struct walk_check *near);
bool resize_book_seen(struct thread *thread, struct resized done);

ALWAYS_INLINE enum realloc_way resize_way(struct resized done) {
    if (done.block == done.old_block) return REALLOC_IN_PLACE;
    bool is_remapped = live_is_remapped((uintptr_t)done.old_block, (uintptr_t)done.block);
    return is_remapped ? REALLOC_REMAPPED : REALLOC_COPIED;
}

// The cell in which a free of this cell's block is counted; 0: it has to be looked for.
ALWAYS_INLINE uint32_t resize_cell_of_free(const struct thread *thread, uint32_t id) {
    return likely(cell_owner(id) == thread->slot) ? id : stack_foreign_known(&thread->stack, id);
}

// All that is asked of a resized block but its stack, as event_is_countable and event_free_fast
// ask: no bound is passed and no cell has to be turned. A block that grows leaves no peak behind.
ALWAYS_INLINE bool resize_is_countable(const struct thread *thread, struct resized done,
                                       uint32_t freed) {
    int64_t net_bytes = thread->record->net_bytes, size = (int64_t)done.size;
    int64_t old_size = (int64_t)done.old.size, left_bytes = net_bytes - old_size;
    bool is_peak = size < old_size && net_bytes > thread->peak_bytes;
    return likely(freed != 0) && likely(left_bytes >= thread->low_bytes) && likely(!is_peak) &&
           likely(left_bytes + size <= thread->high_bytes) &&
           likely(cell_is_current(thread->at.cell)) && likely(cell_is_current(&cells.items[freed]));
}

ALWAYS_INLINE bool resize_count(struct thread *thread, struct resized done, uintptr_t *frame) {
    const bool has_no_stacks = probes_event.word == EVENT_TOTALS;
    struct cairn_thread *record = thread->record;
    const struct walk_check *near = NULL;
    bool has_usual_size;
    if (unlikely(!done.block) || unlikely(!resize_is_usual())) return false;
    if (unlikely(event_is_watched(thread, done.old_block)) || unlikely(thread->watch.left <= 1))
        return false;
    if (has_no_stacks) {
        if (unlikely(!thread->seen.value)) return false;
    } else if (!walk_is_same(&thread->seen, frame, &near)) {
        const struct walk_seen *again = stack_cache_guessed(&thread->recall, frame);
        if (!again) return resize_book_unseen(thread, done, frame, near);
        event_see(thread, *again);
    }
    uint32_t freed = resize_cell_of_free(thread, done.old.id);
    if (unlikely(!resize_is_countable(thread, done, freed)) ||
        unlikely(!event_enter_fast(thread, done.block, done.size, EVENT_USUAL, EVENT_NARROW,
                                   &has_usual_size)))
        return resize_book_seen(thread, done);
    thread->watch.left--;
    cell_count_free(&cells.items[freed], done.old.size);
    record->frees++;
    record->net_bytes -= (int64_t)done.old.size;
    event_count_size(thread, done.size, has_usual_size);
    enum realloc_way way = resize_way(done);
    if (unlikely(!block_stats_count_realloc_again(thread->at.cell, done.old.size, done.size, way)))
        block_stats_count_realloc(thread->seen.value, done.old.size, done.size, way);
    return true;
}

// Books what became of a block that resize_take_usual took. False: nothing was done, and
// resize_book is to do it; the gate is open.
ALWAYS_INLINE bool resize_book_usual(struct resized done, uintptr_t *frame) {
    struct thread *thread = gate_resume((uintptr_t)frame);
    if (unlikely(!thread)) return false;
    bool is_booked = resize_count(thread, done, frame);
    gate_leave(thread);
    return is_booked;
}

#endif
