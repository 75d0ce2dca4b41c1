// SPDX-License-Identifier: Apache-2.0
// Counting goes in the order that makes a killed process lose at most the event in flight. A free
// that leaves a new highest total first opens a new epoch (the peak), then changes its cell, so
// that the cell can save its value at the peak.
#include "runtime/record/event.h"

#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/ages.h"
#include "runtime/record/event_log.h"
#include "runtime/record/guard.h"
#include "runtime/record/sampling.h"
#include "runtime/record/snapshots.h"
#include "runtime/record/totals.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/cells.h"
#include "runtime/sys/probes.h"

ALWAYS_INLINE void count_other_size(struct thread *thread, uint32_t cell, uint64_t size) {
    if (block_stats_count_other_size(cell, size)) thread->at.header = 0;
}

COLD void event_turn_slow(struct thread *thread, uint32_t id) {
    cell_turn(&thread->stack.values, &cells.items[id], id);
    event_generation_look(thread);
}

ALWAYS_INLINE void count_alloc(struct thread *thread, const void *block, uint32_t cell,
                               uint64_t size) {
    struct cairn_thread *record = thread->record;
    uint32_t slack = (uint32_t)live_slack((uintptr_t)block, size);
    cell_alloc(&thread->stack.values, cell, size);
    if (cell != CAIRN_CELL_OTHER) {
        struct cairn_cell *counted = &cells.items[cell];
        counted->slack_bytes += slack;
        if (!block_stats_has_usual_size(counted, size)) count_other_size(thread, cell, size);
    }
    thread_keep_last(thread, block);
    record->allocations++;
    record->allocated_bytes += size;
    record->net_bytes += (int64_t)size;
    if (unlikely(record->net_bytes > thread->high_bytes)) totals_publish(thread, 0, 0);
}

// The address held a block whose free was never seen: it is gone by now.
static COLD void count_implied_free(struct thread *thread, const void *block,
                                    struct live_block stale) {
    gate_count_loss(CAIRN_LOST_IMPLIED_FREE);
    if (settings.has_events) event_log_unseen(thread, block);
    event_count_free(thread, stale, NULL, true, 0);
}

// The block could not be entered: its free will not be recognised, so it does not stay live.
static COLD void count_untracked(struct thread *thread, const void *block, uint32_t cell,
                                 uint64_t size) {
    gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    count_alloc(thread, block, cell, size);
    event_count_free(thread, (struct live_block){cell, size}, NULL, true, 0);
    thread->log.is_untracked = true;
}

static COLD void alloc_enter_slow(struct thread *thread, void *block, size_t size, uint32_t cell) {
    struct live_block stale = {0, 0};
    bool is_entered = live_insert((uintptr_t)block, cell, size, &stale);
    if (unlikely(stale.id) && stale.id < cells.id_limit) count_implied_free(thread, block, stale);
    if (unlikely(!is_entered)) return count_untracked(thread, block, cell, size);
    count_alloc(thread, block, cell, size);
}

// Blocks of another allocator than glibc's come here too.
static NOINLINE void alloc_enter_rare(struct thread *thread, void *block, size_t size,
                                      uint32_t cell) {
    bool has_usual_size;
    bool is_done = live.is_wide && cell == thread->seen.value &&
                   likely(event_enter_wide(thread, block, size, &has_usual_size));
    if (unlikely(!is_done)) return alloc_enter_slow(thread, block, size, cell);
    if (!has_usual_size) count_other_size(thread, cell, size);
}

static COLD void log_alloc(struct thread *thread, const void *block, uint32_t cell, uint64_t size) {
    event_log_alloc(thread, block, cell, size);
    if (thread->log.is_untracked) event_log_unseen(thread, block);
    thread->log.is_untracked = false;
}

static NOINLINE void note_block(struct thread *thread, const void *block, uint32_t cell,
                                uint64_t size) {
    if (settings.has_events) log_alloc(thread, block, cell, size);
    if (settings.has_ages) ages_begin(thread, block);
    if (settings.guard_bytes) guard_note(block, cell);
}

// With what the layout notes of a block.
ALWAYS_INLINE void alloc_enter(struct thread *thread, void *block, size_t size, uint32_t cell,
                               enum event_layout layout) {
    const enum event_layout fast = layout == EVENT_NARROW_LOGGED ? layout : EVENT_NARROW;
    bool has_usual_size;
    bool is_done =
        cell == thread->seen.value &&
        likely(event_enter_fast(thread, block, size, EVENT_GROWING, fast, &has_usual_size));
    if (unlikely(!is_done))
        alloc_enter_rare(thread, block, size, cell);
    else if (!has_usual_size)
        count_other_size(thread, cell, size);
    if (layout == EVENT_NARROW_NOTED || (layout == EVENT_NARROW_LOGGED && unlikely(!is_done)))
        note_block(thread, block, cell, size);
}

COLD void event_log_next(struct thread *thread, uint64_t flags, uint64_t alignment,
                         const void *taken) {
    thread->log.flags = flags;
    thread->log.alignment = alignment;
    thread->log.taken = taken;
}

uint32_t event_alloc_now(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    event_look_on();
    if (unlikely(!gate_is_recording() || thread->nest.is_off)) return 0;
    if (unlikely(!block)) {
        thread->record->failed++;
        return 0;
    }
    bool is_bounded = probes_event.mode == EVENT_BOUNDED;
    event_generation_look(thread);
    uint32_t cell = unlikely(is_bounded) ? event_cell(thread, size, frame)
                                         : event_cell_of_caller(thread, frame);
    alloc_enter(thread, block, size, cell, EVENT_NARROW);
    if (unlikely(settings.has_notes)) note_block(thread, block, cell, size);
    return cell;
}

NOINLINE void event_alloc_in(struct thread *thread, void *block, size_t size, uint32_t cell) {
    alloc_enter(thread, block, size, cell, EVENT_NARROW);
}

// The trace is of the present rules, which it never is where the thread is switched off
// (region_stack_switch).
ALWAYS_INLINE bool is_countable(const struct thread *thread, const void *block) {
    return block && thread->trace.generation == rule_generation() && gate_is_undisturbed();
}

ALWAYS_INLINE void *alloc_unguessed_in(struct thread *thread, void *block, size_t size,
                                       uintptr_t *frame, const struct walk_check *near,
                                       bool is_guessed, enum event_layout layout) {
    if (unlikely(!is_countable(thread, block))) return event_alloc_rare(thread, block, size, frame);
    event_generation_look(thread);
    alloc_enter(thread, block, size, event_cell_of_unseen(thread, frame, near, is_guessed), layout);
    gate_leave(thread);
    return block;
}

static NOINLINE void *alloc_unguessed(struct thread *thread, void *block, size_t size,
                                      uintptr_t *frame, const struct walk_check *near,
                                      bool is_guessed) {
    return alloc_unguessed_in(thread, block, size, frame, near, is_guessed, EVENT_NARROW);
}

static NOINLINE void *alloc_unguessed_logged(struct thread *thread, void *block, size_t size,
                                             uintptr_t *frame, const struct walk_check *near,
                                             bool is_guessed) {
    return alloc_unguessed_in(thread, block, size, frame, near, is_guessed, EVENT_NARROW_LOGGED);
}

ALWAYS_INLINE void count_new_size(struct thread *thread, size_t size) {
    uint32_t id = thread->seen.value;
    struct cairn_sizes *sizes = thread->at.sizes;
    bool is_its = sizes->cell == id;
    if (!is_its && likely(sizes = block_stats_sizes(id))) {
        thread->at.sizes = sizes;
        if (likely(block_stats_count_again(sizes, size))) return;
    }
    if (unlikely(!sizes))
        count_other_size(thread, id, size);
    else if (block_stats_count_size_in(id, sizes, size))
        thread->at.header = 0;
}

NOINLINE void event_count_new_size(struct thread *thread, size_t size) {
    count_new_size(thread, size);
}

static NOINLINE void *alloc_new_size(struct thread *thread, void *block, size_t size) {
    count_new_size(thread, size);
    gate_leave(thread);
    return block;
}

// The end of an allocation of the last stack whose size is not its usual one.
ALWAYS_INLINE void *alloc_other_size(struct thread *thread, void *block, size_t size) {
    struct cairn_sizes *sizes = thread->at.sizes;
    bool is_its = sizes->cell == thread->seen.value;
    if (unlikely(!is_its) || unlikely(!block_stats_count_again(sizes, size)))
        return alloc_new_size(thread, block, size);
    gate_leave(thread);
    return block;
}

// Every usual block of an allocator other than glibc's, whose layout the hooks do not know.
static NOINLINE void *alloc_wide(struct thread *thread, void *block, size_t size,
                                 uintptr_t *frame) {
    bool has_usual_size;
    if (unlikely(!block) || unlikely(!event_enter_wide(thread, block, size, &has_usual_size)))
        return event_alloc_seen(thread, block, size, frame);
    if (!has_usual_size) return alloc_other_size(thread, block, size);
    gate_leave(thread);
    return block;
}

// An allocation whose stack is remembered.
ALWAYS_INLINE void *alloc_again(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                                struct walk_seen again, enum event_layout layout) {
    const bool is_logged = layout == EVENT_NARROW_LOGGED;
    bool has_usual_size;
    event_see(thread, again);
    if (unlikely(!event_make_countable(thread, size)))
        return is_logged ? event_alloc_seen_logged(thread, block, size, frame)
                         : event_alloc_seen(thread, block, size, frame);
    if (unlikely(!event_enter_fast(thread, block, size, EVENT_USUAL, layout, &has_usual_size))) {
        if (is_logged) return event_alloc_seen_logged(thread, block, size, frame);
        return live.is_wide ? alloc_wide(thread, block, size, frame)
                            : event_alloc_seen(thread, block, size, frame);
    }
    if (!has_usual_size) return alloc_other_size(thread, block, size);
    gate_leave(thread);
    return block;
}

// Stacks come in no order.
static NOINLINE void *alloc_digested(struct thread *thread, void *block, size_t size,
                                     uintptr_t *frame, const struct walk_check *near) {
    const struct walk_seen *again = stack_cache_digested(&thread->recall, frame);
    if (!again) return alloc_unguessed(thread, block, size, frame, near, false);
    return alloc_again(thread, block, size, frame, *again, EVENT_NARROW);
}

// One of few stacks in turn is what most programs' next stack is. So this is one function without a
// call, but for those at its end, and saves no registers. The stack is remembered only while the
// thread is not switched off and goes by the present rules; that recording as a whole is, and a
// mark, is noticed where a cell is not of the present epoch.
void *event_alloc_unseen(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                         const struct walk_check *near) {
    const struct walk_seen *again = stack_cache_guessed(&thread->recall, frame);
    if (again) return alloc_again(thread, block, size, frame, *again, EVENT_NARROW);
    if (stack_cache_digests(&thread->recall))
        return alloc_digested(thread, block, size, frame, near);
    bool is_guessed = stack_cache_guesses(&thread->recall);
    return alloc_unguessed(thread, block, size, frame, near, is_guessed);
}

NOINLINE void *event_alloc_unseen_logged(struct thread *thread, void *block, size_t size,
                                         uintptr_t *frame, const struct walk_check *near) {
    const struct walk_seen *again = stack_cache_guessed(&thread->recall, frame);
    if (again) return alloc_again(thread, block, size, frame, *again, EVENT_NARROW_LOGGED);
    bool is_guessed = stack_cache_guesses(&thread->recall);
    return alloc_unguessed_logged(thread, block, size, frame, near, is_guessed);
}

void *event_alloc_unseen_noted(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                               const struct walk_check *near) {
    return alloc_unguessed_in(thread, block, size, frame, near, false, EVENT_NARROW_NOTED);
}

static bool free_known(struct thread *thread, const void *block, struct live_block known,
                       uintptr_t *frame) {
    if (unlikely(!known.id)) return false;
    uint32_t freeing = unlikely(settings.has_free_stacks) ? event_cell_freeing(thread, frame) : 0;
    event_count_free(thread, known, block, true, freeing);
    if (unlikely(settings.has_ages)) ages_end(thread, block, known.id);
    if (unlikely(settings.has_events)) event_log_free(thread, block, known.id, known.size);
    return true;
}

ALWAYS_INLINE bool free_now(struct thread *thread, void *block, uintptr_t *frame) {
    if (likely(event_free_fast(thread, block, EVENT_GROWING, EVENT_NARROW))) return true;
    if (live.is_wide && likely(event_free_fast(thread, block, EVENT_GROWING, EVENT_WIDE)))
        return true;
    return free_known(thread, block, event_take_now(block), frame);
}

// A tracer listens: it gets blocks that are not known as well.
static COLD bool free_told(struct thread *thread, void *block, uintptr_t *frame) {
    bool may_have = probes_event.mode < EVENT_SAMPLED || probes_event.mode == EVENT_MIXED;
    struct live_block known = may_have ? event_take_now(block) : (struct live_block){0, 0};
    bool is_known = free_known(thread, block, known, frame);
    if (!is_known) known = sampling_free(thread, block, frame);
    if (block) probe_free(frame, block, known.size, known.id);
    return known.id != 0;
}

// One free in EVENT_TIMED_EVERY, by its number: not the first, which would count for a thousand
// that find everything prepared. Those of temporary blocks do not look at their number: as many are
// timed as event_alloc_watched times allocations of such blocks.
static bool is_free_timed(const struct thread *thread, const void *block) {
    uint64_t number = thread->record->frees;
    if (unlikely(number % EVENT_TIMED_EVERY == 0) && number && !event_is_temporary(thread, block))
        return true;
    return unlikely(event_is_watched(thread, block)) && event_is_temporary(thread, block) &&
           thread->watch.random % 2;
}

// An event that took longer has waited for a processor, which would count for a thousand too.
static void count_own_time(struct thread *thread, uint64_t start_ns) {
    const uint64_t longest_ns = 20000;
    uint64_t taken_ns = sys_clock_ns() - start_ns, cost_ns = sys_clock_cost_ns();
    if (taken_ns > longest_ns) taken_ns = longest_ns;
    if (taken_ns > cost_ns) thread->record->own_ns += (taken_ns - cost_ns) * EVENT_TIMED_EVERY;
}

// A block of another thread's cell is none that this one watched.
NOINLINE void event_watched_freed(struct thread *thread, uint32_t id) {
    watch_end(&thread->watch, id, thread->record->allocations);
}

static COLD uint32_t alloc_timed(struct thread *thread, void *block, size_t size,
                                 uintptr_t *frame) {
    uint64_t start = sys_clock_ns();
    uint32_t cell = event_alloc_now(thread, block, size, frame);
    count_own_time(thread, start);
    // not in the time: other events do not do it
    totals_publish_calls(thread);
    if (settings.has_ages && !ages_check_clock()) event_age_slowly();
    // a steady heap passes no bounds
    bool is_due = snapshots_is_due() || timeline_is_due(&thread->point, sink_now_coarse_ns());
    if (is_due) totals_publish(thread, 0, 0);
    return cell;
}

static COLD bool free_timed(struct thread *thread, void *block, uintptr_t *frame) {
    uint64_t start = sys_clock_ns();
    bool is_known = free_now(thread, block, frame);
    count_own_time(thread, start);
    return is_known;
}

COLD uint32_t event_alloc_watched(struct thread *thread, void *block, size_t size,
                                  uintptr_t *frame) {
    bool is_taken = watch_renew(&thread->watch);
    uint32_t cell = is_taken && thread->watch.random % 2
                        ? alloc_timed(thread, block, size, frame)
                        : event_alloc_now(thread, block, size, frame);
    if (cell) cell_look_ahead(cell);
    if (!is_taken || !cell || cell_owner(cell) != thread->slot) return cell;
    watch_begin(&thread->watch, block, cell, thread->record->allocations);
    thread_keep_last(thread, block);  // its free does more than count
    return cell;
}

uint32_t event_alloc(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    uint32_t cell = event_alloc_counted(thread, block, size, frame);
    if (unlikely(probes_event.listeners) && cell) probe_alloc(frame, block, size, cell);
    return cell;
}

// Goes the long way, which knows the cell; what malloc would have aligned as well goes the usual.
void event_record_aligned(void *block, size_t size, size_t alignment, uintptr_t *frame) {
    if (unlikely(event_is_off()) && !event_turn_on()) return;
    if (block && (alignment <= CAIRN_ALIGN_PLAIN || !event_is_exact())) {
        event_record_alloc(block, size, frame);
        return;
    }
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (unlikely(!thread)) return;
    if (unlikely(settings.has_events)) event_log_next(thread, CAIRN_EVENT_ALIGNED, alignment, NULL);
    uint32_t cell = event_alloc(thread, block, size, frame);
    thread->log.flags = 0;
    if (cell && cell != CAIRN_CELL_OTHER)
        block_stats_count_aligned(cell, alignment, live_slack((uintptr_t)block, size),
                                  live_waste((uintptr_t)block, size));
    gate_leave(thread);
}

bool event_free(struct thread *thread, void *block, uintptr_t *frame) {
    event_look_on();
    if (unlikely(probes_event.listeners)) return free_told(thread, block, frame);
    if (unlikely(is_free_timed(thread, block))) return free_timed(thread, block, frame);
    return free_now(thread, block, frame);
}

// A mark leaves a stack with another cell, which the long way finds.
ALWAYS_INLINE void *alloc_seen(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                               enum event_layout layout) {
    if (unlikely(!block || stack_has_new_generation(&thread->stack) || !gate_is_undisturbed()))
        return event_alloc_rare(thread, block, size, frame);
    alloc_enter(thread, block, size, thread->seen.value, layout);
    gate_leave(thread);
    return block;
}

NOINLINE void *event_alloc_seen(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    return alloc_seen(thread, block, size, frame, EVENT_NARROW);
}

NOINLINE void *event_alloc_seen_noted(struct thread *thread, void *block, size_t size,
                                      uintptr_t *frame) {
    return alloc_seen(thread, block, size, frame, EVENT_NARROW_NOTED);
}

NOINLINE void *event_alloc_seen_logged(struct thread *thread, void *block, size_t size,
                                       uintptr_t *frame) {
    return alloc_seen(thread, block, size, frame, EVENT_NARROW_LOGGED);
}

NOINLINE void *event_alloc_other_size_logged(struct thread *thread, void *block, size_t size,
                                             uintptr_t *frame) {
    bool has_usual_size;
    if (unlikely(!event_enter_fast(thread, block, size, EVENT_USUAL, EVENT_NARROW_LOGGED,
                                   &has_usual_size)))
        return event_alloc_seen_logged(thread, block, size, frame);
    if (!has_usual_size) return alloc_other_size(thread, block, size);
    gate_leave(thread);
    return block;
}

NOINLINE void *event_alloc_other_size(struct thread *thread, void *block, size_t size,
                                      uintptr_t *frame) {
    bool has_usual_size;
    if (unlikely(live.is_wide)) return alloc_wide(thread, block, size, frame);
    if (unlikely(
            !event_enter_fast(thread, block, size, EVENT_USUAL, EVENT_NARROW, &has_usual_size)))
        return event_alloc_seen(thread, block, size, frame);
    if (!has_usual_size) return alloc_other_size(thread, block, size);
    gate_leave(thread);
    return block;
}

// The real function had no memory. If that is for a limit that nobody has told us of, there may be
// some now: zeroed, since that of calloc is to be.
static COLD void *alloc_relieved(size_t size, uintptr_t *frame) {
    return process_relieve((uintptr_t)frame) ? real.calloc(1, size) : NULL;
}

static COLD void *alloc_failed(struct thread *thread, size_t size, uintptr_t *frame) {
    gate_leave(thread);
    void *block = alloc_relieved(size, frame);
    thread = gate_enter((uintptr_t)frame);
    if (!thread) return block;
    event_alloc(thread, block, size, frame);
    gate_leave(thread);
    return block;
}

NOINLINE void *event_alloc_rare(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    if (unlikely(!block)) return alloc_failed(thread, size, frame);
    event_alloc(thread, block, size, frame);
    gate_leave(thread);
    return block;
}

COLD void *event_alloc_closed(void *block, size_t size, uintptr_t *frame) {
    if (!block && !gate_is_busy()) block = alloc_relieved(size, frame);
    struct thread *thread = gate_enter_slow((uintptr_t)frame);
    return thread ? event_alloc_rare(thread, block, size, frame) : block;
}

static NOINLINE bool free_rest(struct thread *thread, void *block, uintptr_t *frame) {
    // libc frees NULL after the last destructors: not for that an ended thread takes a slot again.
    if (!thread && block) thread = gate_enter_slow((uintptr_t)frame);
    if (!thread) return false;
    bool is_known = event_free(thread, block, frame);
    gate_leave(thread);
    return is_known;
}

// The same of frees.
static NOINLINE bool free_wide(struct thread *thread, void *block, uintptr_t *frame) {
    if (unlikely(!thread) || unlikely(probes_event.word >= EVENT_OFF) ||
        unlikely(!event_free_fast(thread, block, EVENT_USUAL, EVENT_WIDE)))
        return free_rest(thread, block, frame);
    gate_leave(thread);
    return true;
}

// Not of blocks whose free may be timed.
bool event_record_free_growing_logged(struct thread *thread, void *block) {
    if (unlikely(!thread) || unlikely(!gate_is_undisturbed())) return false;
    if (unlikely(event_is_watched(thread, block))) return false;
    if (unlikely(!event_free_fast(thread, block, EVENT_GROWING, EVENT_NARROW_LOGGED))) return false;
    gate_leave(thread);
    return true;
}

bool event_record_free_rest(void *block, struct thread *thread, uintptr_t *frame) {
    return unlikely(live.is_wide) ? free_wide(thread, block, frame)
                                  : free_rest(thread, block, frame);
}

static NOINLINE void *record_alloc_otherwise(void *block, size_t size, uintptr_t *frame) {
    if (event_is_off() && !event_turn_on()) return block;
    if (unlikely(!block) && !gate_is_busy()) block = alloc_relieved(size, frame);
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (unlikely(!thread)) return block;
    if (probes_event.mode < EVENT_SAMPLED) return event_alloc_rare(thread, block, size, frame);
    uint32_t cell = sampling_alloc(thread, block, size, frame);
    if (unlikely(probes_event.listeners) && cell != SAMPLING_NOT_COUNTED)
        probe_alloc(frame, block, size, cell);
    gate_leave(thread);
    return block;
}

void *event_record_alloc_otherwise(void *block, size_t size, uintptr_t *frame) {
    return likely(probes_event.word == EVENT_TOTALS) ? event_record_alloc_totals(block, size, frame)
                                                     : record_alloc_otherwise(block, size, frame);
}

void *event_record_alloc_cleared(void *block, size_t size, uintptr_t *frame) {
    if (!settings.has_events) return event_record_alloc_otherwise(block, size, frame);
    if (unlikely(!block) && !gate_is_busy()) block = alloc_relieved(size, frame);
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return block;
    event_log_next(thread, CAIRN_EVENT_CLEARED, 0, NULL);
    event_alloc(thread, block, size, frame);
    thread->log.flags = 0;
    gate_leave(thread);
    return block;
}

bool event_record_free_otherwise(void *block, uintptr_t *frame) {
    if (event_is_off()) event_turn_on();
    if (probes_event.mode == EVENT_OFF) return !bootstrap_owns(block);
    if (!block || event_free_passes(block) || event_free_passes_paused(block)) return true;
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return false;
    bool may_be_exact = probes_event.word != EVENT_SAMPLED;
    bool is_known = may_be_exact && event_free(thread, block, frame);
    if (!is_known) is_known = sampling_free(thread, block, frame).id != 0;
    gate_leave(thread);
    return is_known;
}
