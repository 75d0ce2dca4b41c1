// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/resize.h"

#include "runtime/process/real.h"
#include "runtime/thread/gate.h"

struct live_block resize_take(void *block, uintptr_t *frame) {
    struct live_block none = {0, 0};
    if (unlikely(event_is_off())) event_turn_on();
    bool passes =
        !event_is_exact() && (event_free_passes(block) || event_free_passes_paused(block));
    struct thread *thread = block && !passes ? gate_enter((uintptr_t)frame) : NULL;
    if (!thread) return none;
    struct live_block old = event_take(block, frame);
    if (!old.id && !bootstrap_owns(block) && event_is_exact())
        gate_count_loss(CAIRN_LOST_UNKNOWN_FREE);
    gate_leave(thread);
    return old;
}

void resize_book(void *block, struct live_block old, void *result, size_t size, uintptr_t *frame) {
    bool is_done = event_is_sampling() && !old.id && sampling_passes(result, size);
    if (is_done || (event_is_off() && !old.id)) return;
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return;
    if (result || (block && size == 0)) {
        const struct event_realloc done = {block, old, result, size};
        event_realloc_done(thread, &done, frame);
    } else {
        event_put_back(block, old, frame);
        event_alloc(thread, NULL, size, frame);
    }
    gate_leave(thread);
}

void resize_keep(void *block, struct live_block old, uintptr_t *frame) {
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return;
    event_put_back(block, old, frame);
    gate_leave(thread);
}
