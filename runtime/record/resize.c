// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/resize.h"

#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/record/event_log.h"
#include "runtime/thread/gate.h"

// With the log only modes are in use that event_take_now is right for.
static COLD struct live_block take_logged(void *block) {
    struct live_block known = event_take_now(block);
    if (known.id) event_log_take(gate_self, block, known.id, known.size);
    return known;
}

// id 0: it was not recorded.
static struct live_block take_old(void *block, uintptr_t *frame) {
    if (unlikely(settings.has_events)) return take_logged(block);
    if (likely(probes_event.mode < EVENT_OFF)) return event_take_now(block);
    struct live_block known =
        probes_event.mode == EVENT_SAMPLED ? (struct live_block){0, 0} : event_take_now(block);
    return known.id ? known : sampling_take(gate_self, block, frame);
}

// Only a registered thread can be INSIDE, and without that the call that libc's reallocarray makes
// to realloc would be an event besides.
static COLD void take_slot(uintptr_t *frame) {
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (thread) gate_leave(thread);
}

struct live_block resize_take(void *block, uintptr_t *frame) {
    struct live_block none = {0, 0};
    if (unlikely(event_is_off())) event_turn_on();
    if (unlikely(!gate_is_registered()) && !event_is_off()) take_slot(frame);
    bool passes =
        !event_is_exact() && (event_free_passes(block) || event_free_passes_paused(block));
    struct thread *thread = block && !passes ? gate_enter((uintptr_t)frame) : NULL;
    if (!thread) return none;
    struct live_block old = take_old(block, frame);
    if (!old.id && !bootstrap_owns(block) && event_is_exact())
        gate_count_loss(CAIRN_LOST_UNKNOWN_FREE);
    gate_leave(thread);
    return old;
}

// A tracer gets a realloc as one event, of one without an old or a new block as what it is.
static COLD void realloc_tell(const struct resized *done, uint32_t cell, const uintptr_t *frame) {
    if (!done->block)
        probe_free(frame, done->old_block, done->old.size, done->old.id);
    else if (!done->old_block)
        probe_alloc(frame, done->block, done->size, cell);
    else
        probe_realloc(frame, done->block, done->size, cell, done->old_block, done->old.size);
}

// The old block may be a sample, or one from before in the live map.
static void realloc_sampled(struct thread *thread, const struct resized *done, uintptr_t *frame) {
    uint32_t cell = SAMPLING_PASSED;
    if (thread->has_taken)
        sampling_book_taken(thread);
    else if (done->old.id)
        event_count_free(thread, done->old, NULL, !done->block || done->size < done->old.size, 0);
    if (done->block) cell = sampling_alloc(thread, done->block, done->size, frame);
    if (unlikely(probes_event.listeners) && cell != SAMPLING_NOT_COUNTED)
        realloc_tell(done, cell, frame);
}

// The log has that the block was taken.
static COLD void log_realloc(struct thread *thread, const struct resized *done) {
    bool is_counted = done->block && gate_is_recording() && !thread->nest.is_off;
    if (is_counted)
        event_log_next(thread, CAIRN_EVENT_MOVED, 0, done->old_block);
    else
        event_log_settle(thread, done->old_block, CAIRN_EVENT_GONE);
}

// A block that grows does not leave a peak behind: the higher total comes right after.
ALWAYS_INLINE uint32_t realloc_exact(struct thread *thread, const struct resized *done,
                                     uintptr_t *frame) {
    bool is_shrinking = !done->block || done->size < done->old.size;
    if (done->old.id && done->block && event_is_watched(thread, done->old_block))
        watch_drop(&thread->watch);
    if (done->old.id) {
        uint32_t freeing =
            unlikely(settings.has_free_stacks) ? event_cell_freeing(thread, frame) : 0;
        const void *freed = done->block ? NULL : done->old_block;
        event_count_free(thread, done->old, freed, is_shrinking, freeing);
    }
    if (unlikely(settings.has_events) && done->old.id) log_realloc(thread, done);
    if (!done->block) return 0;
    uint32_t cell = event_alloc_counted(thread, done->block, done->size, frame);
    thread->log.flags = 0;
    if (done->old.id && cell > CAIRN_CELL_OTHER)
        block_stats_count_realloc(cell, done->old.size, done->size, resize_way(*done));
    return cell;
}

static COLD void realloc_rare(struct thread *thread, const struct resized *done, uintptr_t *frame) {
    uint32_t cell = 0;
    if (probes_event.mode >= EVENT_SAMPLED) return realloc_sampled(thread, done, frame);
    if (thread->has_taken)
        sampling_book_taken(thread);  // PAUSED
    else
        cell = realloc_exact(thread, done, frame);
    if (probes_event.listeners && (cell || !done->block)) realloc_tell(done, cell, frame);
}

// Its old block was taken: a log does not begin before the new one (event_alloc_now).
static void book_done(struct thread *thread, const struct resized *done, uintptr_t *frame) {
    if (unlikely(!gate_is_recording())) event_pause();
    if (unlikely(probes_event.word >= EVENT_OFF)) return realloc_rare(thread, done, frame);
    realloc_exact(thread, done, frame);
}

static void put_back(void *block, struct live_block old, uintptr_t *frame) {
    struct live_block stale;
    if (unlikely(gate_self->has_taken))
        sampling_put_back(gate_self, block, frame);
    else if (old.id)
        live_insert((uintptr_t)block, old.id, old.size, &stale);
    if (unlikely(settings.has_events) && old.id)
        event_log_settle(gate_self, block, CAIRN_EVENT_BACK);
}

NOINLINE void resize_book(void *block, struct live_block old, void *result, size_t size,
                          uintptr_t *frame) {
    bool is_done = event_is_sampling() && !old.id && sampling_passes(result, size);
    if (is_done || (event_is_off() && !old.id)) return;
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return;
    if (result || (block && size == 0)) {
        const struct resized done = {block, old, result, size};
        book_done(thread, &done, frame);
    } else {
        put_back(block, old, frame);
        event_alloc(thread, NULL, size, frame);
    }
    gate_leave(thread);
}

NOINLINE bool resize_take_any(void *block, struct live_block *old) {
    if (unlikely(!cells.fast_limit)) return false;
    *old = event_take_now(block);
    return old->id != 0;
}

// The allocation is counted down as event_alloc_counted does.
static void book_in(struct thread *thread, struct resized done, uint32_t cell) {
    thread->watch.left--;
    event_count_free(thread, done.old, NULL, done.size < done.old.size, 0);
    event_alloc_in(thread, done.block, done.size, cell);
    if (cell != CAIRN_CELL_OTHER)
        block_stats_count_realloc(cell, done.old.size, done.size, resize_way(done));
}

// A mark leaves a stack with another cell, which the long way finds.
static bool has_news(const struct thread *thread) {
    return stack_has_new_generation(&thread->stack) || !gate_is_undisturbed();
}

// The trace is never of the present rules where the thread is switched off (region_stack_switch).
NOINLINE bool resize_book_unseen(struct thread *thread, struct resized done, uintptr_t *frame,
                                 const struct walk_check *near) {
    if (unlikely(thread->trace.generation != rule_generation()) || unlikely(has_news(thread)))
        return false;
    bool is_guessed = stack_cache_guesses(&thread->recall);
    book_in(thread, done, event_cell_of_unseen(thread, frame, near, is_guessed));
    return true;
}

NOINLINE bool resize_book_seen(struct thread *thread, struct resized done) {
    if (unlikely(has_news(thread))) return false;
    book_in(thread, done, thread->seen.value);
    return true;
}

void resize_keep(void *block, struct live_block old, uintptr_t *frame) {
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return;
    put_back(block, old, frame);
    gate_leave(thread);
}
