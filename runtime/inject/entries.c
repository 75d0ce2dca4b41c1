// SPDX-License-Identifier: Apache-2.0
#include "runtime/inject/entries.h"

#include <sys/syscall.h>

#include "runtime/process/real.h"
#include "runtime/record/event.h"
#include "runtime/record/resize.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"

// Which layout of the live map a fast path needs is a constant in it. With an allocator in the
// executable the map is the wide one; with other namespaces' libcs alone it may be the narrow one.
ALWAYS_INLINE void record_alloc(uintptr_t block, size_t size, uintptr_t *frame) {
    if (likely(live.is_wide))
        event_record_alloc_in((void *)block, size, frame, EVENT_WIDE);
    else
        event_record_alloc_in((void *)block, size, frame, EVENT_NARROW);
}

ALWAYS_INLINE bool record_free(uintptr_t block, uintptr_t *frame) {
    return likely(live.is_wide) ? event_record_free_in((void *)block, frame, EVENT_WIDE)
                                : event_record_free_in((void *)block, frame, EVENT_NARROW);
}

enum { RESOLVE_TRIES = 100 };

// A thread without a slot gets one now, so that calls inside its first event are known as such.
static COLD bool enter_first(uintptr_t *frame) {
    // of a static program: nothing ran before, and another thread may be at it
    for (int i = 0; i < RESOLVE_TRIES && unlikely(!real_is_resolved()); i++) {
        if (i) sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        real_resolve();
    }
    bool is_new = !gate_is_registered() && probes_event.mode != EVENT_OFF;
    struct thread *thread = is_new ? gate_enter_slow((uintptr_t)frame) : NULL;
    if (thread) gate_leave(thread);
    return thread && event_inside_begin((uintptr_t)frame);
}

// The function itself; what it calls of its own kind is no event.
ALWAYS_INLINE uintptr_t call(entry_function *actual, uintptr_t a, uintptr_t b, uintptr_t c,
                             uintptr_t d, uintptr_t e, uintptr_t *frame) {
    bool inside = event_inside_begin((uintptr_t)frame);
    if (unlikely(!inside)) inside = enter_first(frame);
    uintptr_t result = actual(a, b, c, d, e);
    event_inside_end(inside);
    return result;
}

uintptr_t entry_alloc(uintptr_t size, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                      entry_function *actual) {
    uintptr_t block = call(actual, size, b, c, d, e, EVENT_HERE());
    record_alloc(block, size, EVENT_HERE());
    return block;
}

uintptr_t entry_aligned(uintptr_t alignment, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                        entry_function *actual) {
    uintptr_t block = call(actual, alignment, size, c, d, e, EVENT_HERE());
    event_record_aligned((void *)block, size, alignment, EVENT_HERE());
    return block;
}

uintptr_t entry_new(uintptr_t size, uintptr_t alignment, uintptr_t c, uintptr_t d, uintptr_t e,
                    entry_function *actual) {
    uintptr_t block = call(actual, size, alignment, c, d, e, EVENT_HERE());
    event_record_aligned((void *)block, size, alignment, EVENT_HERE());
    return block;
}

uintptr_t entry_calloc(uintptr_t count, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                       entry_function *actual) {
    uintptr_t block = call(actual, count, size, c, d, e, EVENT_HERE());
    size_t bytes = 0;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) bytes = 0;
    record_alloc(block, bytes, EVENT_HERE());
    return block;
}

uintptr_t entry_realloc(uintptr_t block, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                        entry_function *actual) {
    uintptr_t *frame = EVENT_HERE();
    struct live_block old = resize_take((void *)block, frame);
    uintptr_t result = call(actual, block, size, c, d, e, frame);
    resize_book((void *)block, old, (void *)result, size, frame);
    return result;
}

uintptr_t entry_rearray(uintptr_t block, uintptr_t count, uintptr_t size, uintptr_t d, uintptr_t e,
                        entry_function *actual) {
    uintptr_t *frame = EVENT_HERE();
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    struct live_block old = resize_take((void *)block, frame);
    uintptr_t result = call(actual, block, count, size, d, e, frame);
    resize_book((void *)block, old, (void *)result, bytes, frame);
    return result;
}

// The C function returns an int: its upper half is anything.
uintptr_t entry_memalign(uintptr_t result, uintptr_t alignment, uintptr_t size, uintptr_t d,
                         uintptr_t e, entry_function *actual) {
    uintptr_t status = call(actual, result, alignment, size, d, e, EVENT_HERE());
    void *block = (int)status == 0 ? *(void **)result : NULL;
    event_record_aligned(block, size, alignment, EVENT_HERE());
    return status;
}

// What it returns is the size that the block has now, asked for or not: if that is less than
// `size`, the block stayed as it was. Otherwise at most `size` and `extra` were asked for.
uintptr_t entry_resize(uintptr_t block, uintptr_t size, uintptr_t extra, uintptr_t d, uintptr_t e,
                       entry_function *actual) {
    uintptr_t *frame = EVENT_HERE();
    struct live_block old = resize_take((void *)block, frame);
    uintptr_t result = call(actual, block, size, extra, d, e, frame);
    if (result < size)
        resize_keep((void *)block, old, frame);
    else
        resize_book((void *)block, old, (void *)block,
                    result - size < extra ? result : size + extra, frame);
    return result;
}

// A block from before. As long as nothing is recorded that is no loss, and an event inside another
// one is not looked at.
static COLD void count_unknown(void) {
    if (gate_is_open() && event_is_exact() && gate_is_recording())
        gate_count_loss(CAIRN_LOST_UNKNOWN_FREE);
}

uintptr_t entry_free(uintptr_t block, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                     entry_function *actual) {
    uintptr_t *frame = EVENT_HERE();
    if (!block) return actual(block, b, c, d, e);
    if (!record_free(block, frame)) count_unknown();
    return call(actual, block, b, c, d, e, frame);
}

uintptr_t entry_arena_alloc(uintptr_t arena, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                            entry_function *actual) {
    uintptr_t block = call(actual, arena, size, c, d, e, EVENT_HERE());
    record_alloc(block, size, EVENT_HERE());
    return block;
}

uintptr_t entry_arena_aligned(uintptr_t arena, uintptr_t alignment, uintptr_t size, uintptr_t d,
                              uintptr_t e, entry_function *actual) {
    uintptr_t block = call(actual, arena, alignment, size, d, e, EVENT_HERE());
    event_record_aligned((void *)block, size, alignment, EVENT_HERE());
    return block;
}

uintptr_t entry_arena_calloc(uintptr_t arena, uintptr_t count, uintptr_t size, uintptr_t d,
                             uintptr_t e, entry_function *actual) {
    uintptr_t block = call(actual, arena, count, size, d, e, EVENT_HERE());
    size_t bytes = 0;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) bytes = 0;
    record_alloc(block, bytes, EVENT_HERE());
    return block;
}

uintptr_t entry_arena_realloc(uintptr_t arena, uintptr_t block, uintptr_t size, uintptr_t d,
                              uintptr_t e, entry_function *actual) {
    uintptr_t *frame = EVENT_HERE();
    struct live_block old = resize_take((void *)block, frame);
    uintptr_t result = call(actual, arena, block, size, d, e, frame);
    resize_book((void *)block, old, (void *)result, size, frame);
    return result;
}

uintptr_t entry_arena_free(uintptr_t arena, uintptr_t block, uintptr_t c, uintptr_t d, uintptr_t e,
                           entry_function *actual) {
    uintptr_t *frame = EVENT_HERE();
    if (block && !record_free(block, frame)) count_unknown();
    return call(actual, arena, block, c, d, e, frame);
}

// A thread gives its cache back as it ends: those blocks were freed before.
uintptr_t entry_inside(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                       entry_function *actual) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    uintptr_t result = actual(a, b, c, d, e);
    event_inside_end(inside);
    return result;
}
