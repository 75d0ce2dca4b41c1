// SPDX-License-Identifier: Apache-2.0
// The cell in which an event counts: that of the stack of its hook.
#include "runtime/process/settings.h"
#include "runtime/record/event.h"
#include "runtime/record/languages.h"
#include "runtime/record/sampling.h"
#include "runtime/stack/module.h"

COLD void event_generation_begin(struct thread *thread) {
    thread->seen.frame = NULL;
    thread->seen.value = 0;
    thread_keep_last(thread, thread->last.block);
    stack_cache_reset(&thread->recall);
    stack_thread_recover(&thread->stack);
}

uint32_t event_cell_of_free(struct thread *thread, uint32_t id, bool is_own, uint32_t freeing) {
    if (id == CAIRN_CELL_OTHER) return id;
    uint32_t cell = unlikely(freeing) ? stack_freed(&thread->stack, id, freeing) : 0;
    if (cell) return cell;
    return likely(is_own) ? id : stack_foreign(&thread->stack, id);
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
    uint32_t count = region_stack_frame(&thread->nest, trace->frames, trace->count, trace->room);
    return cell_of_frames(thread, trace->frames, count, walk.keep, frame);
}
NOINLINE uint32_t event_cell_of_unseen(struct thread *thread, uintptr_t *frame,
                                       const struct walk_check *near, bool is_guessed) {
    const struct walk_seen *again = stack_cache_find(&thread->recall, frame, is_guessed);
    if (again) {
        event_see(thread, *again);
    } else {
        bool is_of_trace = walk_seen_checks(&thread->seen) == thread->trace.checks;
        uint32_t differs = walk_differs_near(&thread->seen, near);
        uint32_t cell = cell_of_walk(thread, frame, is_of_trace ? differs : 0);
        struct walk_seen seen = walk_trace_seen(&thread->trace, cell);
        event_see(thread, cell == CAIRN_CELL_OTHER ? (struct walk_seen){0} : seen);
        stack_cache_keep(&thread->recall, &thread->seen);
        return cell;
    }
    stack_cache_keep(&thread->recall, NULL);
    return thread->seen.value;
}

// Its first event, or the first in a region or after a mark.
static COLD uint32_t cell_of_thread_new(struct thread *thread, uintptr_t *frame) {
    struct frame frames[2] = {{.pc = CAIRN_CUT_NO_STACKS}};
    uint32_t count = region_stack_frame(&thread->nest, frames, 1, 2);
    uint32_t cell = cell_of_frames(thread, frames, count, 0, frame);
    event_see(thread, (struct walk_seen){.value = cell == CAIRN_CELL_OTHER ? 0 : cell});
    return cell;
}

uint32_t event_cell_of_thread(struct thread *thread, uintptr_t *frame) {
    uint32_t known = thread->seen.value;
    return likely(known) ? known : cell_of_thread_new(thread, frame);
}

NOINLINE uint32_t event_cell_of_python(struct thread *thread, uintptr_t *frame) {
    struct walk_trace *trace = &thread->trace;
    struct managed_stack stack = languages_stack(thread, frame);
    uint32_t count = region_stack_frame(&thread->nest, stack.frames, stack.count, trace->room);
    uint32_t cell = cell_of_frames(thread, stack.frames, count, stack.keep, frame);
    if (unlikely(stack.is_nameless)) gate_count_loss(CAIRN_LOST_MODULES);
    event_see(thread, (struct walk_seen){.value = cell == CAIRN_CELL_OTHER ? 0 : cell});
    languages_leave(thread);
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
        event_generation_look(thread);
        return cell_of_bucket(thread, size, frame);
    }
    return event_stack(thread, frame);
}

uint32_t event_stack(struct thread *thread, uintptr_t *frame) {
    event_generation_look(thread);
    if (settings.has_no_stacks) return event_cell_of_thread(thread, frame);
    if (settings_has_code_frames()) return event_cell_of_python(thread, frame);
    return event_cell_of_caller(thread, frame);
}

COLD uint32_t event_cell_freeing(struct thread *thread, uintptr_t *frame) {
    if (event_is_sampling()) return 0;  // the budget is used up: from here on samples
    event_generation_look(thread);
    uint32_t cell = event_cell_of_caller(thread, frame);
    return cell == CAIRN_CELL_OTHER ? 0 : cell;
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
    if (is_inside && gate_inside_begin((uintptr_t)frame, GATE_INSIDE)) gate_hold(gate_self, holder);
    return cell;
}
