// SPDX-License-Identifier: Apache-2.0
// What happens when a block is allocated or freed: the only place where the rooms meet.
//     alloc: walk the stack -> intern it -> enter the block -> count
//     free:  take the block out -> count for the cell that allocated it
#ifndef RUNTIME_RECORD_EVENT_H
#define RUNTIME_RECORD_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/check/check.h"
#include "runtime/live/live.h"
#include "runtime/process/real.h"
#include "runtime/record/ages.h"
#include "runtime/record/event_log.h"
#include "runtime/record/modes.h"
#include "runtime/record/sampling.h"
#include "runtime/record/totals.h"
#include "runtime/record/verify.h"
#include "runtime/stack/block_stats.h"
#include "runtime/stack/cells.h"
#include "runtime/sys/probes.h"
#include "runtime/thread/gate.h"
#include "runtime/unwind/unwind_cache.h"
#include "runtime/unwind/walk.h"

// The caller of the hook whose own frame begins at `frame` (__builtin_frame_address(0)): there lie
// the saved frame pointer and the return address.
#define EVENT_HERE() ((uintptr_t *)__builtin_frame_address(0))

// After a call at the end of a hook that is given the hook's frame: without this the compiler might
// leave the hook by a jump, and the frame would be gone.
#define EVENT_KEEP_FRAME() __asm__ volatile("")

// The block stays where the real function returned it and the hook is to: in a register that the
// compiler would rather have for something else in between.
#if defined(__x86_64__)
#define EVENT_KEEP_RESULT(block) __asm__("" : "+a"(block))
#else
#define EVENT_KEEP_RESULT(block) ((void)0)
#endif

// The stack of the hook that this frame of a function of ours is called by, for a block that it
// frees; 0 where it is not known.
uint32_t event_cell_of_freer(uintptr_t *frame);

// A block was allocated; NULL: the call failed. `thread` is BUSY. Its cell; 0: it was not counted.
uint32_t event_alloc(struct thread *thread, void *block, size_t size, uintptr_t *frame);

// A block is about to be freed. False: it was not recorded.
bool event_free(struct thread *thread, void *block, uintptr_t *frame);

// The ways that hooks end when an event is not usual; they return the block, so that a hook need
// not keep it. BUSY is left again.
// ..._unseen: only the stack is not that of the last event; it differs there (walk_is_same).
// ..._seen: the stack is that of the last event, only what it counts in is not as usual.
// ..._other_size: only the block is not like the one before.
// ..._rare: anything else. ..._closed: the gate was not open.
// ..._noted: the same where more is noted of a block (note_block). ..._logged: where it is written
// into a log from the start.
void *event_alloc_unseen(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                         const struct walk_check *near);
void *event_alloc_unseen_noted(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                               const struct walk_check *near);
void *event_alloc_unseen_logged(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                                const struct walk_check *near);
void *event_alloc_seen(struct thread *thread, void *block, size_t size, uintptr_t *frame);
void *event_alloc_seen_noted(struct thread *thread, void *block, size_t size, uintptr_t *frame);
void *event_alloc_seen_logged(struct thread *thread, void *block, size_t size, uintptr_t *frame);
void *event_alloc_other_size(struct thread *thread, void *block, size_t size, uintptr_t *frame);
void *event_alloc_other_size_logged(struct thread *thread, void *block, size_t size,
                                    uintptr_t *frame);
void *event_alloc_rare(struct thread *thread, void *block, size_t size, uintptr_t *frame);
void *event_alloc_closed(void *block, size_t size, uintptr_t *frame);

// The ways of hooks in the modes from OFF on.
void *event_record_alloc_otherwise(void *block, size_t size, uintptr_t *frame);
bool event_record_free_otherwise(void *block, uintptr_t *frame);

// Of OFF, SAMPLED and MIXED: nothing is known of the block, so the real function may have it. Those
// of the bootstrap buffer are marked in the filter of samples.
ALWAYS_INLINE bool event_free_passes(const void *block) {
    if (likely(probes_event.word == EVENT_SAMPLED)) return !blocks_may_have(block);
    return probes_event.mode == EVENT_OFF && !bootstrap_owns(block);
}
// The same of PAUSED. Not in the hooks themselves: beside it the compiler would give those a frame
// in every mode.
ALWAYS_INLINE bool event_free_passes_paused(const void *block) {
    if (probes_event.mode != EVENT_PAUSED || event_is_turned_on()) return false;
    return !live_may_have((uintptr_t)block) && !blocks_may_have(block);
}

// The cell of the caller, or that of all blocks of a size that gets no stack; in the modes that
// are not exact.
uint32_t event_cell(struct thread *thread, size_t size, uintptr_t *frame);

// The cell of the caller in any mode, for what is no block of the heap.
uint32_t event_stack(struct thread *thread, uintptr_t *frame);

// Around a real function that may itself call a hooked one; see gate_inside_begin.
ALWAYS_INLINE bool event_inside_begin(uintptr_t here) {
    bool is_inside = gate_inside_begin(here, GATE_INSIDE);
    if (unlikely(probes_event.mode >= EVENT_PAUSED) && is_inside) sampling_close();
    return is_inside;
}
// The same around an allocator's operator new.
ALWAYS_INLINE bool event_operator_begin(uintptr_t here) {
    bool is_inside = gate_inside_begin(here, GATE_MARKS);
    if (unlikely(probes_event.mode >= EVENT_PAUSED) && is_inside) sampling_close();
    return is_inside;
}
ALWAYS_INLINE void event_inside_end(bool is_inside) {
    if (unlikely(probes_event.mode >= EVENT_PAUSED) && is_inside) sampling_reopen();
    gate_inside_end(is_inside);
}

// One event in EVENT_TIMED_EVERY is timed, for the estimate of cairn's own share of processor time.
enum { EVENT_TIMED_EVERY = 1024 };

// How much a fast path knows. In the hooks, nothing that takes a call, so that nothing has to be
// kept for after one; out of line, also an older epoch, a peak and a total to publish, which are
// frequent in a growing program.
enum event_skill { EVENT_USUAL, EVENT_GROWING };
// Which of the live map's layouts a fast path knows. NARROW_AGED and NARROW_LOGGED also write each
// block's birth, or turn; NARROW_LATE knows turns elsewhere. NARROW_NOTED writes no more than
// NARROW: it is for frees that note their stack. Frees of these four do more than count, so no last
// block is remembered for them, but for NARROW_LOGGED, whose process has no other layout before.
enum event_layout {
    EVENT_NARROW,
    EVENT_NARROW_NOTED,
    EVENT_NARROW_AGED,
    EVENT_NARROW_LOGGED,
    EVENT_NARROW_LATE,
    EVENT_WIDE
};

// Brings a cell to the present epoch. A mark is noticed here, if nowhere before: it is a snapshot,
// so that every cell of an older generation takes the slow way until its thread turns it.
void event_turn_slow(struct thread *thread, uint32_t id);
ALWAYS_INLINE void event_turn(struct thread *thread, struct cairn_cell *cell, uint32_t id) {
    uint32_t epoch = __atomic_load_n(&cells.totals->epoch, __ATOMIC_RELAXED);
    if (unlikely(!cell_turn_fast(cell, epoch))) event_turn_slow(thread, id);
}

// The fast paths: everything that could make an event unusual is looked at first, and only if
// nothing does all is written. On false nothing was; event_alloc and event_free start again and
// know every case.

// Counts a block of the last stack's cell that was entered, for its thread and its cell.
ALWAYS_INLINE void event_count_alloc(struct cairn_thread *record, struct cairn_cell *cell,
                                     uint64_t size, uint32_t slack_bytes) {
    cell_count_alloc(cell, size);
    cell->slack_bytes += slack_bytes;
    record->allocations++;
    record->allocated_bytes += size;
    record->net_bytes += (int64_t)size;
}

// A block of the last stack needs no total to be published…
ALWAYS_INLINE bool event_is_within(const struct thread *thread, size_t size) {
    return likely(thread->record->net_bytes + (int64_t)size <= thread->high_bytes);
}
// …and no cell to be turned.
ALWAYS_INLINE bool event_is_countable(const struct thread *thread, size_t size) {
    return event_is_within(thread, size) && likely(cell_is_current(thread->at.cell));
}
// The same where a turn that needs no call is done: where heaps grow, nearly every cell is older
// than the last peak. What the tool or the program may want is looked at first, as event_look_on
// does; a mark is none of these turns.
ALWAYS_INLINE bool event_make_countable(const struct thread *thread, size_t size) {
    struct cairn_cell *cell = thread->at.cell;
    uint32_t epoch = __atomic_load_n(&cells.totals->epoch, __ATOMIC_ACQUIRE);
    if (!event_is_within(thread, size)) return false;
    if (cell->epoch == epoch) return true;
    return likely(gate_is_undisturbed()) && likely(cell_turn_fast(cell, epoch));
}

// What event_enter_again and event_free_last take from memory, found in the plain way: for the
// check build.
ALWAYS_INLINE void event_check_again(const struct thread *thread, uintptr_t address, size_t size,
                                     const uint32_t *slot, uint32_t word) {
    const struct thread_cell *at = &thread->at;
    uint32_t id = thread->seen.value, slack = (uint32_t)live_slack(address, size);
    check_that(at->cell == &cells.items[id], "cairn check: cell\n");
    check_that(block_stats_has_usual_size(at->cell, size), "cairn check: usual size\n");
    check_that(slack == at->slack_bytes && word == live_narrow_word(address, id, slack),
               "cairn check: word of a block\n");
    check_that(slot == live_narrow_slot(live_origin(address), address), "cairn check: slot\n");
}
ALWAYS_INLINE void event_check_last(const struct thread *thread) {
    const struct thread_last *last = &thread->last;
    const struct live_near none = {.start = LIVE_NEAR_NONE};
    struct live_block known = {0, 0};
    const uint32_t *slot = live_take_slot(&none, (uintptr_t)last->block, &known);
    check_that(slot == last->slot && known.size == last->size, "cairn check: last block\n");
    check_that(&cells.items[known.id] == thread->at.cell && cell_owner(known.id) == thread->slot,
               "cairn check: cell of the last block\n");
}

// What a layout notes of a block that enters: first whether it can without a call, then it does.
ALWAYS_INLINE bool event_is_notable(const struct thread *thread, enum event_layout layout) {
    if (layout == EVENT_NARROW_LOGGED) return likely(event_log_is_ready(thread));
    return layout != EVENT_NARROW_LATE || likely(event_log_is_ready_late(thread));
}
ALWAYS_INLINE void event_note(struct thread *thread, const void *block, uint32_t id, uint64_t size,
                              uint32_t *slot, enum event_layout layout) {
    const uintptr_t address = (uintptr_t)block;
    if (layout == EVENT_NARROW_LOGGED)
        event_log_alloc_fast(thread, block, id, size, live_narrow_turn(slot, address));
    if (layout == EVENT_NARROW_LATE) event_log_alloc_late(thread, block, id, size);
    if (layout == EVENT_NARROW_AGED) ages_note_birth(thread, live_narrow_birth(slot, address));
}

// The block that is remembered has come back, with the size and header of then: it takes its place
// again, by the same word. The place is looked at first: NULL has none, and no header.
ALWAYS_INLINE bool event_enter_same(struct thread *thread, const void *block, size_t size,
                                    enum event_layout layout) {
    struct cairn_cell *cell = thread->at.cell;
    struct cairn_thread *record = thread->record;
    const uintptr_t address = (uintptr_t)block;
    uint32_t *slot = thread->last.slot, word = thread->last.word;
    if (unlikely(!live_is_empty(slot)) || unlikely(live_header(address) != thread->at.header))
        return false;
    if (!event_is_notable(thread, layout)) return false;
    event_note(thread, block, word >> LIVE_ID_SHIFT, size, slot, layout);
    if (CHECK_IS_BUILT_IN) event_check_again(thread, address, size, slot, word);
    *slot = word;
    event_count_alloc(record, cell, size, thread->at.slack_bytes);
    return true;
}

// Such a block whose size and header are those of one before. Its place is remembered for its free
// in the plain layout only (struct thread_last).
ALWAYS_INLINE bool event_enter_again(struct thread *thread, void *block, size_t size,
                                     enum event_layout layout) {
    const bool is_remembered = layout == EVENT_NARROW || layout == EVENT_NARROW_LOGGED;
    struct thread_cell *at = &thread->at;
    struct cairn_cell *cell = at->cell;
    struct cairn_thread *record = thread->record;
    const uintptr_t address = (uintptr_t)block;
    if (unlikely(size != at->size)) return false;
    if (is_remembered && block == thread->last.block && likely(size == thread->last.size))
        return event_enter_same(thread, block, size, layout);
    uint32_t *slot = live_insert_slot_again(&thread->near, address, at->header);
    if (unlikely(!slot)) return false;
    if (!event_is_notable(thread, layout)) return false;
    uint32_t word = at->word + live_narrow_half(address), id = word >> LIVE_ID_SHIFT;
    event_note(thread, block, id, size, slot, layout);
    if (CHECK_IS_BUILT_IN) event_check_again(thread, address, size, slot, word);
    *slot = word;
    event_count_alloc(record, cell, size, at->slack_bytes);
    thread_keep_last(thread, block);
    if (!is_remembered) return true;
    thread->last.slot = slot;
    thread->last.word = word;
    thread->last.size = size;
    return true;
}

// A block of the last stack, whatever its size; by a GROWING event also in a cell of an older
// epoch, with a total to publish. The next one of this size may take event_enter_again.
ALWAYS_INLINE bool event_enter_fast(struct thread *thread, void *block, size_t size,
                                    enum event_skill skill, enum event_layout layout,
                                    bool *has_usual_size) {
    struct thread_cell *at = &thread->at;
    const uintptr_t address = (uintptr_t)block;
    uint32_t slack, id = thread->seen.value;
    uint64_t header;
    uint32_t *slot = live_insert_slot(&thread->near, address, size, &header, &slack);
    if (unlikely(!slot)) return false;
    if (layout == EVENT_NARROW_LOGGED && unlikely(size > UINT32_MAX)) return false;
    if (!event_is_notable(thread, layout)) return false;
    if (skill == EVENT_GROWING) event_turn(thread, at->cell, id);
    event_note(thread, block, id, size, slot, layout);
    uint32_t base = live_narrow_base(id, slack), word = base + live_narrow_half(address);
    *slot = word;
    event_count_alloc(thread->record, at->cell, size, slack);
    *has_usual_size = block_stats_has_usual_size(at->cell, size);
    if (*has_usual_size) {
        at->header = header;
        at->size = size;
        at->slack_bytes = slack;
        at->word = base;
    }
    thread->last.block = block;
    bool is_kept = layout == EVENT_NARROW_LOGGED || cells.fast_limit;
    thread->last.slot = is_kept ? slot : &thread_no_slot;
    thread->last.word = word;
    thread->last.size = size;
    bool is_high = skill == EVENT_GROWING && thread->record->net_bytes > thread->high_bytes;
    if (unlikely(is_high)) totals_publish(thread, 0, 0);
    return true;
}

// The same with the wide layout.
ALWAYS_INLINE bool event_enter_wide(struct thread *thread, void *block, size_t size,
                                    bool *has_usual_size) {
    uint32_t id = thread->seen.value;
    uint64_t word;
    uint64_t *slot = live_wide_insert_slot((uintptr_t)block, id, size, &word);
    if (unlikely(!slot)) return false;
    event_turn(thread, thread->at.cell, id);
    *slot = word;
    event_count_alloc(thread->record, thread->at.cell, size, 0);
    *has_usual_size = block_stats_has_usual_size(thread->at.cell, size);
    thread->last.block = block;
    bool is_high = thread->record->net_bytes > thread->high_bytes;
    if (unlikely(is_high)) totals_publish(thread, 0, 0);
    return true;
}

// All that can be known of an allocation without its stack and its block. (NULL has no slot.)
// The control line is not read here. Whoever switches recording off, or wants a log to begin or to
// end, moves the epoch too (cairn_switch, cairn_ask_to_look). So the next event of every cell takes
// a slow path, which reads the control line before it brings the cell to the new epoch: an
// allocation in event_look_on or gate_is_undisturbed, a free in event_look_on.
ALWAYS_INLINE bool event_is_usual(struct thread *thread) {
    return !watch_is_due(&thread->watch);
}

// On slow paths, before a cell is brought to the present epoch: does what the tool, or the program,
// wants. After that the mode is PAUSED if recording is switched off, and fits the log.
ALWAYS_INLINE void event_look_on(void) {
    if (unlikely(!gate_is_undisturbed())) event_disturbed();
}

// A block whose free says whether its stack's blocks live shortly (watch.h).
ALWAYS_INLINE bool event_is_watched(const struct thread *thread, const void *block) {
    return thread->watch.block == block;
}
void event_watched_freed(struct thread *thread, uint32_t id);

// A block is temporary if the thread that allocated it frees it before it allocates again.
ALWAYS_INLINE bool event_is_temporary(const struct thread *thread, const void *block) {
    return thread->last.block == block;
}
ALWAYS_INLINE void event_count_temporary(struct thread *thread, uint32_t id) {
    thread_keep_last(thread, NULL);
    cell_count_temporary(&cells.items[id]);
}

// A temporary block, if its place and word are remembered, and everything is usual.
ALWAYS_INLINE bool event_free_last(struct thread *thread, enum event_layout layout) {
    struct thread_last *last = &thread->last;
    struct cairn_thread *record = thread->record;
    struct cairn_cell *cell = thread->at.cell;
    uint32_t *slot = last->slot;
    if (unlikely(*slot != last->word) || unlikely(!cell_is_current(cell))) return false;
    int64_t net_bytes = record->net_bytes, left_bytes = net_bytes - (int64_t)last->size;
    if (unlikely(net_bytes > thread->peak_bytes) || unlikely(left_bytes < thread->low_bytes))
        return false;
    if (!event_is_notable(thread, layout)) return false;
    if (CHECK_IS_BUILT_IN) event_check_last(thread);
    if (layout == EVENT_NARROW_LOGGED)
        event_log_free_fast(thread, last->block, live_narrow_turn(slot, (uintptr_t)last->block));
    *slot = 0;
    record->net_bytes = left_bytes;
    record->frees++;
    cell_count_free(cell, last->size);
    cell_count_temporary(cell);
    return true;
}

ALWAYS_INLINE bool event_free_fast(struct thread *thread, void *block, enum event_skill skill,
                                   enum event_layout layout) {
    const bool is_wide = layout == EVENT_WIDE, is_aged = layout == EVENT_NARROW_AGED;
    const bool is_logged = layout == EVENT_NARROW_LOGGED, is_late = layout == EVENT_NARROW_LATE;
    const bool is_remembered = layout == EVENT_NARROW || is_logged;
    const bool can_be_last = skill == EVENT_GROWING || !is_remembered;
    struct cairn_thread *record = thread->record;
    struct live_block known;
    if (!can_be_last && event_is_temporary(thread, block)) return event_free_last(thread, layout);
    uint32_t *slot = is_wide ? NULL : live_take_slot(&thread->near, (uintptr_t)block, &known);
    uint64_t *wide_slot = is_wide ? live_wide_take_slot((uintptr_t)block, &known) : NULL;
    if (unlikely(is_wide ? !wide_slot : !slot)) return false;
    const bool is_noted = is_aged || is_logged || is_late;
    if (unlikely(known.id >= (is_noted ? cells.id_limit : cells.fast_limit))) return false;
    if (unlikely(record->frees % EVENT_TIMED_EVERY == 0)) return false;
    if (is_logged && unlikely(!event_log_is_ready(thread))) return false;
    if (is_late && (unlikely(!event_log_is_ready_late(thread)) ||
                    unlikely(!event_log_is_told(event_log_shared_place(block)))))
        return false;
    int64_t net_bytes = record->net_bytes, size = (int64_t)known.size;
    bool is_peak = net_bytes > thread->peak_bytes, is_low = net_bytes - size < thread->low_bytes;
    if (skill == EVENT_USUAL && unlikely(is_peak || is_low)) return false;
    // No thread owns id 0, which an empty slot holds.
    bool is_own = cell_owner(known.id) == thread->slot;
    if (unlikely(!is_own)) {
        if (known.id <= CAIRN_CELL_OTHER) return false;
        known.id = skill == EVENT_USUAL ? stack_foreign_known(&thread->stack, known.id)
                                        : stack_foreign(&thread->stack, known.id);
        if (known.id <= CAIRN_CELL_OTHER) return false;
    }
    struct cairn_cell *cell = &cells.items[known.id];
    if (skill == EVENT_USUAL && unlikely(!cell_is_current(cell))) return false;
    if (skill == EVENT_USUAL && unlikely(event_is_watched(thread, block))) return false;
    if (is_aged) {
        const struct birth *birth = live_narrow_birth(slot, (uintptr_t)block);
        if (unlikely(!is_own || !ages_count(thread, known.id, birth))) return false;
    }
    if (is_logged) event_log_free_fast(thread, block, live_narrow_turn(slot, (uintptr_t)block));
    if (is_late) event_log_free_late(thread, block);
    if (is_wide)
        *wide_slot = 0;
    else
        *slot = 0;
    if (skill == EVENT_GROWING) {
        if (is_peak) totals_peak_left(thread);
        if (is_low) totals_publish(thread, -size, -1);
        event_turn(thread, cell, known.id);
    }
    cell_count_free(cell, known.size);
    if (can_be_last && event_is_temporary(thread, block) && is_own)
        event_count_temporary(thread, known.id);
    if (skill == EVENT_GROWING && unlikely(event_is_watched(thread, block)))
        event_watched_freed(thread, known.id);
    record->frees++;
    record->net_bytes -= size;
    return true;
}

// Records an allocation that returned `block` (NULL: it failed), which it returns. For hooks, in
// the modes FULL, AGED, LOGGED and LOGGED_LATE, and in NOTED where only frees are noted.
ALWAYS_INLINE void *event_record_alloc_stack(void *block, size_t size, uintptr_t *frame,
                                             enum event_layout layout) {
    const bool is_noted = layout != EVENT_NARROW;
    struct thread *thread = gate_enter_open((uintptr_t)frame);
    EVENT_KEEP_RESULT(block);
    if (unlikely(!thread)) return event_alloc_closed(block, size, frame);
    if (unlikely(!event_is_usual(thread))) return event_alloc_rare(thread, block, size, frame);
    const struct walk_check *near;
    if (unlikely(!walk_is_same(&thread->seen, frame, &near))) {
        if (layout == EVENT_NARROW_LOGGED)
            return event_alloc_unseen_logged(thread, block, size, frame, near);
        return is_noted ? event_alloc_unseen_noted(thread, block, size, frame, near)
                        : event_alloc_unseen(thread, block, size, frame, near);
    }
    bool is_countable = event_is_countable(thread, size);
    if (unlikely(!is_countable) && !is_noted) return event_alloc_seen(thread, block, size, frame);
    if (unlikely(!is_countable) && layout == EVENT_NARROW_LOGGED)
        return event_alloc_seen_logged(thread, block, size, frame);
    if (unlikely(!is_countable || !event_enter_again(thread, block, size, layout))) {
        if (layout == EVENT_NARROW_LOGGED)
            return event_alloc_other_size_logged(thread, block, size, frame);
        return is_noted ? event_alloc_seen_noted(thread, block, size, frame)
                        : event_alloc_other_size(thread, block, size, frame);
    }
    gate_leave(thread);
    EVENT_KEEP_RESULT(block);
    return block;
}
ALWAYS_INLINE void *event_record_alloc_full(void *block, size_t size, uintptr_t *frame) {
    return event_record_alloc_stack(block, size, frame, EVENT_NARROW);
}

// The same in the mode TOTALS, where seen is the thread's only cell, once there is one.
ALWAYS_INLINE void *event_record_alloc_totals(void *block, size_t size, uintptr_t *frame) {
    struct thread *thread = gate_enter_open((uintptr_t)frame);
    if (unlikely(!thread)) return event_alloc_closed(block, size, frame);
    bool is_usual = event_is_usual(thread) && thread->seen.value;
    if (unlikely(!is_usual)) return event_alloc_rare(thread, block, size, frame);
    if (unlikely(!event_is_countable(thread, size)))
        return event_alloc_seen(thread, block, size, frame);
    if (unlikely(!event_enter_again(thread, block, size, EVENT_NARROW)))
        return event_alloc_other_size(thread, block, size, frame);
    gate_leave(thread);
    return block;
}

// The same in every mode.
ALWAYS_INLINE void *event_record_alloc_in(void *block, size_t size, uintptr_t *frame,
                                          enum event_layout layout) {
    if (unlikely(probes_event.word)) {
        if (event_is_sampling() && likely(sampling_passes(block, size))) return block;
        return event_record_alloc_otherwise(block, size, frame);
    }
    return event_record_alloc_stack(block, size, frame, layout);
}
ALWAYS_INLINE void *event_record_alloc(void *block, size_t size, uintptr_t *frame) {
    return event_record_alloc_in(block, size, frame, EVENT_NARROW);
}

// The same of calloc's, in a mode that is not FULL.
void *event_record_alloc_cleared(void *block, size_t size, uintptr_t *frame);

// The same of a block that was asked for with an alignment.
void event_record_aligned(void *block, size_t size, size_t alignment, uintptr_t *frame);

// Records that `block` is about to be freed if that is as usual, without a call. Otherwise nothing
// was done, but `thread` is BUSY, or NULL if the gate was not open.
ALWAYS_INLINE bool event_record_free_usual(void *block, uintptr_t *frame, enum event_layout layout,
                                           struct thread **thread) {
    *thread = gate_enter_open((uintptr_t)frame);
    if (unlikely(!*thread) || unlikely(!event_free_fast(*thread, block, EVENT_USUAL, layout)))
        return false;
    gate_leave(*thread);
    return true;
}

// The same of a log from the start where the heap grows, with calls; otherwise nothing was done.
bool event_record_free_growing_logged(struct thread *thread, void *block);

// What is left to do after that; false: the block is not known. The block is where free has it, so
// that the compiler does not move it there beforehand.
bool event_record_free_rest(void *block, struct thread *thread, uintptr_t *frame);

// Records that `block` is about to be freed; false: it is not known.
ALWAYS_INLINE bool event_record_free_in(void *block, uintptr_t *frame, enum event_layout layout) {
    struct thread *thread;
    if (unlikely(probes_event.word >= EVENT_OFF)) return event_record_free_otherwise(block, frame);
    return likely(event_record_free_usual(block, frame, layout, &thread)) ||
           event_record_free_rest(block, thread, frame);
}
ALWAYS_INLINE bool event_record_free(void *block, uintptr_t *frame) {
    return event_record_free_in(block, frame, EVENT_NARROW);
}

// For event.c, event_cell.c and resize.c: the parts of which an event is made. The thread is BUSY.

// The cell of the stack that frees a block (--free-stacks); 0: there is no room for it.
uint32_t event_cell_freeing(struct thread *thread, uintptr_t *frame);

// The cell in which this thread books a free of a block of cell `id`; `freeing` is the cell of the
// stack that frees, 0: not recorded.
uint32_t event_cell_of_free(struct thread *thread, uint32_t id, bool is_own, uint32_t freeing);

// From now on stacks have other cells.
void event_generation_begin(struct thread *thread);

ALWAYS_INLINE void event_generation_look(struct thread *thread) {
    if (unlikely(stack_has_new_generation(&thread->stack))) event_generation_begin(thread);
}

// What the next event is compared with, and its cell.
ALWAYS_INLINE void event_see(struct thread *thread, struct walk_seen seen) {
    uint32_t id = seen.value;
    thread->seen = seen;
    thread->at.cell = &cells.items[id];
    thread->at.header = 0;
    thread_keep_last(thread, thread->last.block);
}

// The stack is not that of the last event: perhaps one before, or it is walked. It becomes what the
// next event is compared with. `is_guessed`: the guess was tried before, in vain.
uint32_t event_cell_of_unseen(struct thread *thread, uintptr_t *frame,
                              const struct walk_check *near, bool is_guessed);

// The thread's only cell where call stacks are not wanted.
uint32_t event_cell_of_thread(struct thread *thread, uintptr_t *frame);

// Stacks with frames of Python and other languages.
uint32_t event_cell_of_python(struct thread *thread, uintptr_t *frame);

ALWAYS_INLINE uint32_t event_cell_of_caller(struct thread *thread, uintptr_t *frame) {
    if (unlikely(probes_event.mode == EVENT_TOTALS)) return event_cell_of_thread(thread, frame);
    if (unlikely(probes_event.mode == EVENT_PYTHON)) return event_cell_of_python(thread, frame);
    bool is_valid = thread->trace.generation == rule_generation();
    const struct walk_check *near = NULL;
    bool is_same = is_valid && walk_is_same(&thread->seen, frame, &near);
    uint32_t cell = is_same ? thread->seen.value : event_cell_of_unseen(thread, frame, near, false);
    if (unlikely(probes_event.mode == EVENT_VERIFIED)) verify_cell(thread, frame, cell);
    return cell;
}

// `address` is that of a block that is freed for good, or NULL; `freeing` as for
// event_cell_of_free.
ALWAYS_INLINE void event_count_free(struct thread *thread, struct live_block block,
                                    const void *address, bool is_leaving, uint32_t freeing) {
    struct cairn_thread *record = thread->record;
    int64_t size = (int64_t)block.size;
    if (unlikely(is_leaving && record->net_bytes > thread->peak_bytes)) totals_peak_left(thread);
    if (unlikely(record->net_bytes - size < thread->low_bytes)) totals_publish(thread, -size, -1);
    bool is_own = cell_owner(block.id) == thread->slot;
    cell_free(&thread->stack.values, event_cell_of_free(thread, block.id, is_own, freeing),
              block.size);
    event_generation_look(thread);
    // The last block may be older than the log: its free must not take the fast path any more.
    if (unlikely(!cells.fast_limit)) thread_keep_last(thread, thread->last.block);
    if (address && event_is_temporary(thread, address) && is_own)
        event_count_temporary(thread, block.id);
    if (unlikely(address && event_is_watched(thread, address)))
        event_watched_freed(thread, block.id);
    record->frees++;
    record->net_bytes -= size;
}

// The cell; 0: it was not counted.
uint32_t event_alloc_now(struct thread *thread, void *block, size_t size, uintptr_t *frame);

// Its end, where the cell is known and nothing is noted: enters the block and counts it.
void event_alloc_in(struct thread *thread, void *block, size_t size, uint32_t cell);

// Counts the size of a block that event_enter_fast entered, if it is not the usual one.
void event_count_new_size(struct thread *thread, size_t size);
ALWAYS_INLINE void event_count_size(struct thread *thread, size_t size, bool is_usual) {
    struct cairn_sizes *sizes = thread->at.sizes;
    if (is_usual) return;
    if (unlikely(sizes->cell != thread->seen.value) ||
        unlikely(!block_stats_count_again(sizes, size)))
        event_count_new_size(thread, size);
}

// Every other allocation that a thread watches is timed: one in EVENT_TIMED_EVERY.
uint32_t event_alloc_watched(struct thread *thread, void *block, size_t size, uintptr_t *frame);

ALWAYS_INLINE uint32_t event_alloc_counted(struct thread *thread, void *block, size_t size,
                                           uintptr_t *frame) {
    return unlikely(watch_is_due(&thread->watch)) ? event_alloc_watched(thread, block, size, frame)
                                                  : event_alloc_now(thread, block, size, frame);
}

// What notes have of the next allocation beyond its block.
void event_log_next(struct thread *thread, uint64_t flags, uint64_t alignment, const void *taken);

// An id beyond the cells can only come from a slot that a block left behind unseen.
ALWAYS_INLINE struct live_block event_take_now(void *block) {
    struct live_block known = live_take((uintptr_t)block);
    if (unlikely(known.id >= cells.id_limit)) known.id = 0;
    return known;
}

#endif
