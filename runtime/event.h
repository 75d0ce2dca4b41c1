// SPDX-License-Identifier: Apache-2.0
// What happens when a block is allocated or freed: the only place where the rooms meet.
//     alloc: walk the stack -> intern it -> enter the block -> count
//     free:  take the block out -> count for the cell that allocated it
#ifndef RUNTIME_EVENT_H
#define RUNTIME_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/gate.h"
#include "runtime/live/live.h"

// The caller of the hook whose own frame begins at `frame` (__builtin_frame_address(0)): there lie
// the saved frame pointer and the return address.
#define EVENT_HERE() ((uintptr_t *)__builtin_frame_address(0))

// A block was allocated; NULL: the call failed. `thread` is BUSY.
void event_alloc(struct thread *thread, void *block, size_t size, uintptr_t *frame);

// A block is about to be freed. False: it was not recorded.
bool event_free(struct thread *thread, void *block);

// The block's entry, taken out of the live map; id 0 if it was not recorded.
struct live_block event_take(void *block);

// realloc in three steps, since its outcome decides: take the block out of the live map before the
// real call, then book the change, or put the block back if the call failed.
void event_realloc_done(struct thread *thread, struct live_block old, void *block, size_t size,
                        uintptr_t *frame);
void event_put_back(void *block, struct live_block old);

// Records an allocation that returned `block` (NULL: it failed). For hooks.
ALWAYS_INLINE void event_record_alloc(void *block, size_t size, uintptr_t *frame) {
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (unlikely(!thread)) return;
    event_alloc(thread, block, size, frame);
    gate_leave();
}

// Records that `block` is about to be freed; false: it is not known.
ALWAYS_INLINE bool event_record_free(void *block, uintptr_t *frame) {
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (unlikely(!thread)) return false;
    bool is_known = event_free(thread, block);
    gate_leave();
    return is_known;
}

#endif
