// SPDX-License-Identifier: Apache-2.0
// Counting goes in the order that makes a killed process lose at most the event in flight. A free
// that leaves a new highest total first opens a new epoch (the peak), then changes its cell, so
// that the cell can save its value at the peak.
#include "runtime/record/event.h"

#include "runtime/process/settings.h"
#include "runtime/record/ages.h"
#include "runtime/record/event_log.h"
#include "runtime/record/guard.h"
#include "runtime/record/languages.h"
#include "runtime/record/sampling.h"
#include "runtime/record/snapshots.h"
#include "runtime/record/totals.h"
#include "runtime/record/verify.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/module.h"
#include "runtime/sys/probes.h"
#include "runtime/unwind/unwind_cache.h"
#include "runtime/unwind/walk.h"

// From now on stacks have other cells.
static COLD void generation_begin(struct thread *thread) {
    thread->seen.frame = NULL;
    thread->seen.value = 0;
    thread_keep_last(thread, thread->last.block);
    stack_cache_reset(&thread->recall);
    stack_thread_recover(&thread->stack);
}

ALWAYS_INLINE void generation_look(struct thread *thread) {
    if (unlikely(stack_has_new_generation(&thread->stack))) generation_begin(thread);
}

// What the next event is compared with, and its cell.
ALWAYS_INLINE void see(struct thread *thread, struct walk_seen seen) {
    uint32_t id = seen.value;
    thread->seen = seen;
    thread->at.cell = &cells.items[id];
    thread->at.header = 0;
    thread_keep_last(thread, thread->last.block);
}

ALWAYS_INLINE void count_other_size(struct thread *thread, uint32_t cell, uint64_t size) {
    if (block_stats_count_first_size(&cells.items[cell], size) ||
        unlikely(block_stats_count_other_size(cell, size)))
        thread->at.header = 0;
}

COLD void event_turn_slow(struct thread *thread, uint32_t id) {
    cell_turn(&thread->stack.values, &cells.items[id], id);
    generation_look(thread);
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

// The cell in which this thread books a free of a block of cell `id`; `freeing` is the cell of the
// stack that frees, 0: not recorded.
static uint32_t cell_of_free(struct thread *thread, uint32_t id, bool is_own, uint32_t freeing) {
    if (id == CAIRN_CELL_OTHER) return id;
    uint32_t cell = unlikely(freeing) ? stack_freed(&thread->stack, id, freeing) : 0;
    if (cell) return cell;
    return likely(is_own) ? id : stack_foreign(&thread->stack, id);
}

// `address` is that of a block that is freed for good, or NULL; `freeing` as for cell_of_free.
ALWAYS_INLINE void count_free(struct thread *thread, struct live_block block, const void *address,
                              bool is_leaving, uint32_t freeing) {
    struct cairn_thread *record = thread->record;
    int64_t size = (int64_t)block.size;
    if (unlikely(is_leaving && record->net_bytes > thread->peak_bytes)) totals_peak_left(thread);
    if (unlikely(record->net_bytes - size < thread->low_bytes)) totals_publish(thread, -size, -1);
    bool is_own = cell_owner(block.id) == thread->slot;
    cell_free(&thread->stack.values, cell_of_free(thread, block.id, is_own, freeing), block.size);
    generation_look(thread);
    // The last block may be older than the log: its free must not take the fast path any more.
    if (unlikely(!cells.fast_limit)) thread_keep_last(thread, thread->last.block);
    if (address && event_is_temporary(thread, address) && is_own)
        event_count_temporary(thread, block.id);
    if (unlikely(address && event_is_watched(thread, address)))
        event_watched_freed(thread, block.id);
    record->frees++;
    record->net_bytes -= size;
}

// The recording takes more memory than it may: from now on blocks are sampled, for which the rest
// of the budget is kept free.
static COLD void degrade(void) {
    uint16_t from = probes_event.mode;
    bool is_exact = from == EVENT_FULL || from == EVENT_BOUNDED || from == EVENT_PYTHON ||
                    (from == EVENT_NOTED && !settings.has_notes);
    if (!is_exact || !sampling_begin()) return;
    sys_set_budget(settings.overhead_bytes);
    event_mode_wanted = EVENT_MIXED;
    __atomic_compare_exchange_n(&probes_event.mode, &from, EVENT_MIXED, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

static COLD void count_lost_stack(void) {
    bool is_budget = sys_is_over_budget();
    gate_count_loss(is_budget ? CAIRN_LOST_BUDGET : CAIRN_LOST_NO_MEMORY);
    if (is_budget) degrade();
}

static COLD void tell_stack(const uintptr_t *frame, uint32_t cell, const struct frame *frames,
                            uint32_t count) {
    probe_new_stack(frame, cell, count, &frames[count - 1].pc, -(int64_t)sizeof *frames);
}

// The cell of these frames, of which the outer `keep` are those of the stack before.
ALWAYS_INLINE uint32_t cell_of_frames(struct thread *thread, const struct frame *frames,
                                      uint32_t count, uint32_t keep, const uintptr_t *frame) {
    enum stack_outcome outcome;
    uint32_t cell = stack_intern(&thread->stack, frames, count, keep, &outcome);
    if (unlikely(outcome)) {
        if (outcome == STACK_LOST)
            count_lost_stack();
        else if (unlikely(probes_new_stack))
            tell_stack(frame, cell, frames, count);
    }
    return cell;
}

static uint32_t cell_of_walk(struct thread *thread, uintptr_t *frame, uint32_t differs) {
    struct walk_start start = walk_start_of(frame);
    struct walk_trace *trace = &thread->trace;
    struct walk_result walk = walk_stack_from(trace, &start, differs);
    if (unlikely(walk.has_new_code)) languages_note_modules(trace);
    uint32_t count = region_stack_frame(&thread->nest, trace->frames, trace->count, trace->limit);
    return cell_of_frames(thread, trace->frames, count, walk.keep, frame);
}

// The stack is not that of the last event: perhaps one before, or it is walked. It becomes what the
// next event is compared with. `is_guessed`: the guess was tried before, in vain.
static __attribute__((noinline)) uint32_t cell_of_unseen(struct thread *thread, uintptr_t *frame,
                                                         const struct walk_check *near,
                                                         bool is_guessed) {
    const struct walk_seen *again = stack_cache_find(&thread->recall, frame, is_guessed);
    if (again) {
        see(thread, *again);
    } else {
        bool is_of_trace = walk_seen_checks(&thread->seen) == thread->trace.checks;
        uint32_t differs = walk_differs_near(&thread->seen, near);
        uint32_t cell = cell_of_walk(thread, frame, is_of_trace ? differs : 0);
        struct walk_seen seen = walk_trace_seen(&thread->trace, cell);
        see(thread, cell == CAIRN_CELL_OTHER ? (struct walk_seen){0} : seen);
        stack_cache_keep(&thread->recall, &thread->seen);
        return cell;
    }
    stack_cache_keep(&thread->recall, NULL);
    return thread->seen.value;
}

// The thread's only cell where call stacks are not wanted.
static COLD uint32_t cell_of_thread(struct thread *thread, uintptr_t *frame) {
    struct frame frames[2] = {{.pc = CAIRN_CUT_NO_STACKS}};
    uint32_t count = region_stack_frame(&thread->nest, frames, 1, 2);
    uint32_t cell = cell_of_frames(thread, frames, count, 0, frame);
    see(thread, (struct walk_seen){.value = cell == CAIRN_CELL_OTHER ? 0 : cell});
    return cell;
}

// Stacks with frames of Python and other languages.
static __attribute__((noinline)) uint32_t cell_of_python(struct thread *thread, uintptr_t *frame) {
    struct walk_trace *trace = &thread->trace;
    struct managed_stack stack = languages_stack(thread, frame);
    uint32_t count = region_stack_frame(&thread->nest, stack.frames, stack.count, trace->limit);
    uint32_t cell = cell_of_frames(thread, stack.frames, count, stack.keep, frame);
    if (unlikely(stack.is_nameless)) gate_count_loss(CAIRN_LOST_MODULES);
    see(thread, (struct walk_seen){.value = cell == CAIRN_CELL_OTHER ? 0 : cell});
    return cell;
}

ALWAYS_INLINE uint32_t cell_of_caller(struct thread *thread, uintptr_t *frame) {
    if (unlikely(probes_event.mode == EVENT_TOTALS)) return cell_of_thread(thread, frame);
    if (unlikely(probes_event.mode == EVENT_PYTHON)) return cell_of_python(thread, frame);
    bool is_valid = thread->trace.generation == rule_generation();
    const struct walk_check *near = NULL;
    bool is_same = is_valid && walk_is_same(&thread->seen, frame, &near);
    uint32_t cell = is_same ? thread->seen.value : cell_of_unseen(thread, frame, near, false);
    if (unlikely(probes_event.mode == EVENT_VERIFIED)) verify_cell(thread, frame, cell);
    return cell;
}

// The thread's cell of blocks that are too small or too large for a stack. What was interned before
// is forgotten: the next stack has nothing in common with the pseudo frame.
static COLD uint32_t cell_of_bucket(struct thread *thread, size_t size, uintptr_t *frame) {
    bool is_large = size >= settings.min_bytes;
    uint32_t *cell = &thread->bucket_cells[is_large];
    struct frame pseudo = {.pc = is_large ? CAIRN_CUT_LARGE : CAIRN_CUT_SMALL};
    if (*cell) return *cell;
    uint32_t made = cell_of_frames(thread, &pseudo, 1, 0, frame);
    stack_thread_recover(&thread->stack);
    if (made != CAIRN_CELL_OTHER) *cell = made;
    return made;
}

uint32_t event_cell(struct thread *thread, size_t size, uintptr_t *frame) {
    if (settings_is_outside(size) && !settings.has_no_stacks) {
        generation_look(thread);
        return cell_of_bucket(thread, size, frame);
    }
    return event_stack(thread, frame);
}

uint32_t event_stack(struct thread *thread, uintptr_t *frame) {
    generation_look(thread);
    if (settings.has_no_stacks) return cell_of_thread(thread, frame);
    if (settings_has_code_frames()) return cell_of_python(thread, frame);
    return cell_of_caller(thread, frame);
}

// The cell of the stack that frees a block (--free-stacks); 0: there is no room for it.
static COLD uint32_t cell_freeing(struct thread *thread, uintptr_t *frame) {
    if (event_is_sampling()) return 0;  // the budget is used up: from here on samples
    generation_look(thread);
    uint32_t cell = cell_of_caller(thread, frame);
    return cell == CAIRN_CELL_OTHER ? 0 : cell;
}

// The address held a block whose free was never seen: it is gone by now.
static COLD void count_implied_free(struct thread *thread, const void *block,
                                    struct live_block stale) {
    gate_count_loss(CAIRN_LOST_IMPLIED_FREE);
    if (settings.has_events) event_log_unseen(thread, block);
    count_free(thread, stale, NULL, true, 0);
}

// The block could not be entered: its free will not be recognised, so it does not stay live.
static COLD void count_untracked(struct thread *thread, const void *block, uint32_t cell,
                                 uint64_t size) {
    gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    count_alloc(thread, block, cell, size);
    count_free(thread, (struct live_block){cell, size}, NULL, true, 0);
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

// What notes have of the next allocation beyond its block.
static COLD void log_next(struct thread *thread, uint64_t flags, uint64_t alignment,
                          const void *taken) {
    thread->log.flags = flags;
    thread->log.alignment = alignment;
    thread->log.taken = taken;
}

// The cell; 0: it was not counted.
static uint32_t alloc_now(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    event_look_on();
    if (unlikely(!gate_is_recording() || thread->nest.is_off)) return 0;
    if (unlikely(!block)) {
        thread->record->failed++;
        return 0;
    }
    bool is_bounded = probes_event.mode == EVENT_BOUNDED;
    generation_look(thread);
    uint32_t cell =
        unlikely(is_bounded) ? event_cell(thread, size, frame) : cell_of_caller(thread, frame);
    alloc_enter(thread, block, size, cell, EVENT_NARROW);
    if (unlikely(settings.has_notes)) note_block(thread, block, cell, size);
    return cell;
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
    generation_look(thread);
    alloc_enter(thread, block, size, cell_of_unseen(thread, frame, near, is_guessed), layout);
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

static NOINLINE void *alloc_new_size(struct thread *thread, void *block, size_t size) {
    uint32_t id = thread->seen.value;
    count_other_size(thread, id, size);
    struct cairn_sizes *sizes = block_stats_sizes(id);
    if (sizes) thread->at.sizes = sizes;
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

// One of few stacks in turn is what most programs' next stack is. So this is one function without a
// call, but for those at its end, and saves no registers. The stack is remembered only while the
// thread is not switched off and goes by the present rules; that recording as a whole is, and a
// mark, is noticed where a cell is not of the present epoch.
ALWAYS_INLINE void *alloc_unseen(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                                 const struct walk_check *near, enum event_layout layout) {
    const bool is_logged = layout == EVENT_NARROW_LOGGED;
    const struct walk_seen *again = stack_cache_guessed(&thread->recall, frame);
    bool has_usual_size;
    if (!again) {
        bool is_guessed = stack_cache_guesses(&thread->recall);
        return is_logged ? alloc_unguessed_logged(thread, block, size, frame, near, is_guessed)
                         : alloc_unguessed(thread, block, size, frame, near, is_guessed);
    }
    see(thread, *again);
    if (unlikely(!event_is_countable(thread, size)))
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

void *event_alloc_unseen(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                         const struct walk_check *near) {
    return alloc_unseen(thread, block, size, frame, near, EVENT_NARROW);
}

NOINLINE void *event_alloc_unseen_logged(struct thread *thread, void *block, size_t size,
                                         uintptr_t *frame, const struct walk_check *near) {
    return alloc_unseen(thread, block, size, frame, near, EVENT_NARROW_LOGGED);
}

void *event_alloc_unseen_noted(struct thread *thread, void *block, size_t size, uintptr_t *frame,
                               const struct walk_check *near) {
    return alloc_unguessed_in(thread, block, size, frame, near, false, EVENT_NARROW_NOTED);
}

// An id beyond the cells can only come from a slot that a block left behind unseen.
ALWAYS_INLINE struct live_block take_now(void *block) {
    struct live_block known = live_take((uintptr_t)block);
    if (unlikely(known.id >= cells.id_limit)) known.id = 0;
    return known;
}

// With the log only modes are in use that take_now is right for.
static COLD struct live_block take_logged(void *block) {
    struct live_block known = take_now(block);
    if (known.id) event_log_take(gate_self, block, known.id, known.size);
    return known;
}

struct live_block event_take(void *block, uintptr_t *frame) {
    if (unlikely(settings.has_events)) return take_logged(block);
    if (likely(probes_event.mode < EVENT_OFF)) return take_now(block);
    struct live_block known =
        probes_event.mode == EVENT_SAMPLED ? (struct live_block){0, 0} : take_now(block);
    return known.id ? known : sampling_take(gate_self, block, frame);
}

static bool free_known(struct thread *thread, const void *block, struct live_block known,
                       uintptr_t *frame) {
    if (unlikely(!known.id)) return false;
    uint32_t freeing = unlikely(settings.has_free_stacks) ? cell_freeing(thread, frame) : 0;
    count_free(thread, known, block, true, freeing);
    if (unlikely(settings.has_ages)) ages_end(thread, block, known.id);
    if (unlikely(settings.has_events)) event_log_free(thread, block, known.id, known.size);
    return true;
}

ALWAYS_INLINE bool free_now(struct thread *thread, void *block, uintptr_t *frame) {
    if (likely(event_free_fast(thread, block, EVENT_GROWING, EVENT_NARROW))) return true;
    if (live.is_wide && likely(event_free_fast(thread, block, EVENT_GROWING, EVENT_WIDE)))
        return true;
    return free_known(thread, block, take_now(block), frame);
}

// A tracer listens: it gets blocks that are not known as well.
static COLD bool free_told(struct thread *thread, void *block, uintptr_t *frame) {
    bool may_have = probes_event.mode < EVENT_SAMPLED || probes_event.mode == EVENT_MIXED;
    struct live_block known = may_have ? take_now(block) : (struct live_block){0, 0};
    bool is_known = free_known(thread, block, known, frame);
    if (!is_known) known = sampling_free(thread, block, frame);
    if (block) probe_free(frame, block, known.size, known.id);
    return known.id != 0;
}

// One free in EVENT_TIMED_EVERY, by its number: not the first, which would count for a thousand
// that find everything prepared. Those of temporary blocks do not look at their number: as many are
// timed as alloc_watched times allocations of such blocks.
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
    uint32_t cell = alloc_now(thread, block, size, frame);
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

// Every other allocation that a thread watches is timed: one in EVENT_TIMED_EVERY.
static COLD uint32_t alloc_watched(struct thread *thread, void *block, size_t size,
                                   uintptr_t *frame) {
    bool is_taken = watch_renew(&thread->watch);
    uint32_t cell = is_taken && thread->watch.random % 2 ? alloc_timed(thread, block, size, frame)
                                                         : alloc_now(thread, block, size, frame);
    if (cell) cell_look_ahead(cell);
    if (!is_taken || !cell || cell_owner(cell) != thread->slot) return cell;
    watch_begin(&thread->watch, block, cell, thread->record->allocations);
    thread_keep_last(thread, block);  // its free does more than count
    return cell;
}

ALWAYS_INLINE uint32_t alloc_count(struct thread *thread, void *block, size_t size,
                                   uintptr_t *frame) {
    return unlikely(watch_is_due(&thread->watch)) ? alloc_watched(thread, block, size, frame)
                                                  : alloc_now(thread, block, size, frame);
}

uint32_t event_alloc(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    uint32_t cell = alloc_count(thread, block, size, frame);
    if (unlikely(probes_event.listeners) && cell) probe_alloc(frame, block, size, cell);
    return cell;
}

// Goes the long way, which knows the cell; what malloc would have aligned as well goes the usual.
void event_record_aligned(void *block, size_t size, size_t alignment, uintptr_t *frame) {
    if (unlikely(event_is_off()) && !event_turn_on()) return;
    if (alignment <= CAIRN_ALIGN_PLAIN || !event_is_exact()) {
        event_record_alloc(block, size, frame);
        return;
    }
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (unlikely(!thread)) return;
    if (unlikely(settings.has_events)) log_next(thread, CAIRN_EVENT_ALIGNED, alignment, NULL);
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

// A tracer gets a realloc as one event, of one without an old or a new block as what it is.
static COLD void realloc_tell(const struct event_realloc *done, uint32_t cell,
                              const uintptr_t *frame) {
    if (!done->block)
        probe_free(frame, done->old_block, done->old.size, done->old.id);
    else if (!done->old_block)
        probe_alloc(frame, done->block, done->size, cell);
    else
        probe_realloc(frame, done->block, done->size, cell, done->old_block, done->old.size);
}

// The old block may be a sample, or one from before in the live map.
static void realloc_sampled(struct thread *thread, const struct event_realloc *done,
                            uintptr_t *frame) {
    uint32_t cell = SAMPLING_PASSED;
    if (thread->has_taken)
        sampling_book_taken(thread);
    else if (done->old.id)
        count_free(thread, done->old, NULL, !done->block || done->size < done->old.size, 0);
    if (done->block) cell = sampling_alloc(thread, done->block, done->size, frame);
    if (unlikely(probes_event.listeners) && cell != SAMPLING_NOT_COUNTED)
        realloc_tell(done, cell, frame);
}

// The log has that the block was taken.
static COLD void log_realloc(struct thread *thread, const struct event_realloc *done) {
    bool is_counted = done->block && gate_is_recording() && !thread->nest.is_off;
    if (is_counted)
        log_next(thread, CAIRN_EVENT_MOVED, 0, done->old_block);
    else
        event_log_settle(thread, done->old_block, CAIRN_EVENT_GONE);
}

// A block that grows does not leave a peak behind: the higher total comes right after.
ALWAYS_INLINE uint32_t realloc_exact(struct thread *thread, const struct event_realloc *done,
                                     uintptr_t *frame) {
    bool is_shrinking = !done->block || done->size < done->old.size;
    if (done->old.id && done->block && event_is_watched(thread, done->old_block))
        watch_drop(&thread->watch);
    if (done->old.id) {
        uint32_t freeing = unlikely(settings.has_free_stacks) ? cell_freeing(thread, frame) : 0;
        const void *freed = done->block ? NULL : done->old_block;
        count_free(thread, done->old, freed, is_shrinking, freeing);
    }
    if (unlikely(settings.has_events) && done->old.id) log_realloc(thread, done);
    if (!done->block) return 0;
    uint32_t cell = alloc_count(thread, done->block, done->size, frame);
    thread->log.flags = 0;
    uint32_t id = thread->seen.value;
    if (done->old.id && id && gate_is_recording() && !thread->nest.is_off)
        block_stats_count_realloc(id, done->old.size, done->size, done->block == done->old_block);
    return cell;
}

static COLD void realloc_rare(struct thread *thread, const struct event_realloc *done,
                              uintptr_t *frame) {
    uint32_t cell = 0;
    if (probes_event.mode >= EVENT_SAMPLED) return realloc_sampled(thread, done, frame);
    if (thread->has_taken)
        sampling_book_taken(thread);  // PAUSED
    else
        cell = realloc_exact(thread, done, frame);
    if (probes_event.listeners && (cell || !done->block)) realloc_tell(done, cell, frame);
}

// Its old block was taken: a log does not begin before the new one (alloc_now).
void event_realloc_done(struct thread *thread, const struct event_realloc *done, uintptr_t *frame) {
    if (unlikely(!gate_is_recording())) event_pause();
    if (unlikely(probes_event.word >= EVENT_OFF)) return realloc_rare(thread, done, frame);
    realloc_exact(thread, done, frame);
}

void event_put_back(void *block, struct live_block old, uintptr_t *frame) {
    struct live_block stale;
    if (unlikely(gate_self->has_taken))
        sampling_put_back(gate_self, block, frame);
    else if (old.id)
        live_insert((uintptr_t)block, old.id, old.size, &stale);
    if (unlikely(settings.has_events) && old.id)
        event_log_settle(gate_self, block, CAIRN_EVENT_BACK);
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

NOINLINE void *event_alloc_rare(struct thread *thread, void *block, size_t size, uintptr_t *frame) {
    event_alloc(thread, block, size, frame);
    gate_leave(thread);
    return block;
}

COLD void *event_alloc_closed(void *block, size_t size, uintptr_t *frame) {
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

void *event_record_alloc_otherwise(void *block, size_t size, uintptr_t *frame) {
    if (event_is_off() && !event_turn_on()) return block;
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (unlikely(!thread)) return block;
    if (probes_event.mode < EVENT_SAMPLED) return event_alloc_rare(thread, block, size, frame);
    uint32_t cell = sampling_alloc(thread, block, size, frame);
    if (unlikely(probes_event.listeners) && cell != SAMPLING_NOT_COUNTED)
        probe_alloc(frame, block, size, cell);
    gate_leave(thread);
    return block;
}

void event_record_alloc_cleared(void *block, size_t size, uintptr_t *frame) {
    if (!settings.has_events) {
        event_record_alloc_otherwise(block, size, frame);
        return;
    }
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return;
    log_next(thread, CAIRN_EVENT_CLEARED, 0, NULL);
    event_alloc(thread, block, size, frame);
    thread->log.flags = 0;
    gate_leave(thread);
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

// The stack without the frames of ours that it begins with.
static uint32_t cell_without_own(struct thread *thread, uintptr_t *frame) {
    struct walk_start start = walk_start_of(frame);
    struct walk_trace *trace = &thread->trace;
    enum stack_outcome outcome;
    struct walk_result walk = walk_stack(trace, &start);
    uint32_t count = trace->count;
    if (walk.has_new_code) languages_note_modules(trace);
    while (count && gate_is_own_code(trace->frames[count - 1].pc)) count--;
    stack_thread_recover(&thread->stack);
    uint32_t cell = stack_intern(&thread->stack, trace->frames, count, 0, &outcome);
    if (unlikely(probes_new_stack) && outcome == STACK_NEW)
        tell_stack(frame, cell, trace->frames, count);
    thread->seen = (struct walk_seen){0};
    stack_thread_recover(&thread->stack);
    return outcome == STACK_LOST ? 0 : cell;
}

// realloc is INSIDE, and goes on to be.
COLD uint32_t event_cell_of_freer(uintptr_t *frame) {
    struct thread *thread = gate_self;
    struct gate_holder holder = thread->holder;
    bool is_inside = thread->line->is_registered && holder.frame & GATE_INSIDE;
    if (gate_is_busy() || settings.has_no_stacks || probes_event.mode == EVENT_OFF) return 0;
    gate_inside_end(is_inside);
    thread = gate_enter((uintptr_t)frame);
    uint32_t cell = thread ? cell_without_own(thread, frame) : 0;
    if (thread) gate_leave(thread);
    if (is_inside && gate_inside_begin((uintptr_t)frame)) gate_hold(gate_self, holder);
    return cell;
}
