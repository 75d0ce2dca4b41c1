// SPDX-License-Identifier: Apache-2.0
// The wrapped functions. Each calls the real one with the program's own arguments and hands back
// its result and errno; recording happens around it.
//
// A free or realloc takes its block out of the live map before the real call: from then on another
// thread may get the same address. An allocation enters its block after the real call, before the
// program has it.
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/inject/attach.h"
#include "runtime/inject/deepbind.h"
#include "runtime/inject/operators_lead.h"
#include "runtime/inject/wrap.h"
#include "runtime/managed/memory.h"
#include "runtime/process/end.h"
#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/event.h"
#include "runtime/record/resize.h"
#include "runtime/sys/environment.h"
#include "runtime/thread/gate.h"

#define EXPORT __attribute__((visibility("default"), used))

// malloc and free are written so that what is usual needs no call but that of the real function,
// and hardly a register that must be kept. Each other mode of malloc is a hook of its own, reached
// by a jump.
static NOINLINE void *malloc_aged(size_t size) {
    void *block = real.malloc(size);
    block = event_record_alloc_stack(block, size, EVENT_HERE(), EVENT_NARROW_AGED);
    EVENT_KEEP_FRAME();
    return block;
}

static NOINLINE void *malloc_logged(size_t size) {
    void *block = real.malloc(size);
    block = event_record_alloc_stack(block, size, EVENT_HERE(), EVENT_NARROW_LOGGED);
    EVENT_KEEP_FRAME();
    return block;
}

static NOINLINE void *malloc_logged_late(size_t size) {
    void *block = real.malloc(size);
    block = event_record_alloc_stack(block, size, EVENT_HERE(), EVENT_NARROW_LATE);
    EVENT_KEEP_FRAME();
    return block;
}

static NOINLINE void *malloc_noted(size_t size) {
    void *block = real.malloc(size);
    block = event_record_alloc_stack(block, size, EVENT_HERE(), EVENT_NARROW_NOTED);
    EVENT_KEEP_FRAME();
    return block;
}

static NOINLINE void *malloc_totals(size_t size) {
    void *block = real.malloc(size);
    block = event_record_alloc_totals(block, size, EVENT_HERE());
    EVENT_KEEP_FRAME();
    return block;
}

static NOINLINE void *malloc_rare(size_t size) {
    void *block = real.malloc(size);
    block = event_record_alloc_otherwise(block, size, EVENT_HERE());
    EVENT_KEEP_FRAME();
    return block;
}

// What is not settled by the countdown.
static NOINLINE void *malloc_sampled(void *block, size_t size) {
    block = event_record_alloc_otherwise(block, size, EVENT_HERE());
    EVENT_KEEP_FRAME();
    return block;
}

static NOINLINE void *malloc_sampling(size_t size) {
    void *block = real.malloc(size);
    return likely(sampling_passes(block, size)) ? block : malloc_sampled(block, size);
}

// Apart, so that sampling and OFF pay nothing for the looks.
static NOINLINE void *malloc_exact(size_t size) {
    if (probes_event.mode == EVENT_PAUSED && !event_turn_on()) return real.malloc(size);
    if (probes_event.word == EVENT_LOGGED_LATE) return malloc_logged_late(size);
    if (probes_event.word == EVENT_NOTED && !settings.has_notes) return malloc_noted(size);
    return probes_event.word == EVENT_AGED ? malloc_aged(size) : malloc_rare(size);
}

static NOINLINE void *malloc_otherwise(size_t size) {
    if (probes_event.word == EVENT_TOTALS) return malloc_totals(size);
    if (unlikely(probes_event.mode == EVENT_OFF) && !event_turn_on()) return real.malloc(size);
    if (probes_event.word == EVENT_LOGGED) return malloc_logged(size);
    if (event_is_sampling()) return malloc_sampling(size);
    return malloc_exact(size);
}

static NOINLINE void *malloc_off(size_t size) {
    return event_turn_on() ? malloc_otherwise(size) : real.malloc(size);
}

EXPORT void *malloc(size_t size) {
    if (unlikely(probes_event.word != EVENT_FULL)) {
        // The word is read again here, so that the usual path compares it where it lies.
        __asm__ volatile("" : : : "memory");
        if (probes_event.word == EVENT_SAMPLED) return malloc_sampling(size);
        return probes_event.word == EVENT_OFF ? malloc_off(size) : malloc_otherwise(size);
    }
    // A copy that nobody needs above, so that the compiler does not make a frame for it there.
    size_t kept = size;
    __asm__("" : "+r"(kept));
    void *block = real.malloc(size);
    block = event_record_alloc_full(block, kept, EVENT_HERE());
    EVENT_KEEP_FRAME();
    return block;
}

EXPORT void *calloc(size_t count, size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *block = real.calloc(count, size);
    event_inside_end(inside);
    size_t bytes = 0;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) bytes = SIZE_MAX;
    if (unlikely(probes_event.word) && !event_is_sampling())
        block = event_record_alloc_cleared(block, bytes, EVENT_HERE());
    else
        block = event_record_alloc(block, bytes, EVENT_HERE());
    EVENT_KEEP_FRAME();
    return block;
}

// Nothing that cairn knows: a block from before, of the bootstrap buffer, or NULL.
static COLD void free_unknown(void *block) {
    if (!block || bootstrap_owns(block)) return;
    // An open gate: the block was looked for. Otherwise the event itself counts as lost, or is the
    // allocator's own. As long as nothing is recorded, blocks that are not known are no loss.
    if (gate_is_open() && event_is_exact() && gate_is_recording())
        gate_count_loss(CAIRN_LOST_UNKNOWN_FREE);
    real.free(block);
}

// NULL is freed often: a dozen times for each thread that glibc starts, for one.
static NOINLINE void free_rest(void *block, struct thread *thread, uintptr_t *frame) {
    if (!block) {
        if (thread) gate_leave(thread);
    } else if (event_record_free_rest(block, thread, frame))
        real.free(block);
    else
        free_unknown(block);
}

static NOINLINE void free_rare(void *block) {
    if (event_record_free_otherwise(block, EVENT_HERE()))
        real.free(block);
    else
        free_unknown(block);
    EVENT_KEEP_FRAME();
}

static NOINLINE void free_aged(void *block) {
    struct thread *thread;
    if (likely(event_record_free_usual(block, EVENT_HERE(), EVENT_NARROW_AGED, &thread)))
        return real.free(block);
    free_rest(block, thread, EVENT_HERE());
    EVENT_KEEP_FRAME();
}

static NOINLINE void free_rest_logged(void *block, struct thread *thread, uintptr_t *frame) {
    if (likely(event_record_free_growing_logged(thread, block))) return real.free(block);
    free_rest(block, thread, frame);
}

static NOINLINE void free_logged(void *block) {
    struct thread *thread;
    if (likely(event_record_free_usual(block, EVENT_HERE(), EVENT_NARROW_LOGGED, &thread)))
        return real.free(block);
    free_rest_logged(block, thread, EVENT_HERE());
    EVENT_KEEP_FRAME();
}

static NOINLINE void free_logged_late(void *block) {
    struct thread *thread;
    if (likely(event_record_free_usual(block, EVENT_HERE(), EVENT_NARROW_LATE, &thread)))
        return real.free(block);
    free_rest(block, thread, EVENT_HERE());
    EVENT_KEEP_FRAME();
}

static NOINLINE void free_exact(void *block) {
    if (probes_event.word == EVENT_LOGGED) return free_logged(block);
    if (event_free_passes_paused(block)) return real.free(block);
    if (probes_event.word == EVENT_LOGGED_LATE) return free_logged_late(block);
    if (probes_event.word == EVENT_AGED) return free_aged(block);
    free_rare(block);
}

// Of OFF and later modes.
ALWAYS_INLINE void free_otherwise(void *block) {
    if (likely(event_free_passes(block))) return real.free(block);
    free_exact(block);
}

EXPORT void free(void *block) {
    struct thread *thread;
    if (unlikely(probes_event.word >= EVENT_OFF)) {
        // The word is read again here, so that the usual path compares it where it lies.
        __asm__ volatile("" : : : "memory");
        return free_otherwise(block);
    }
    if (likely(event_record_free_usual(block, EVENT_HERE(), EVENT_NARROW, &thread)))
        return real.free(block);
    free_rest(block, thread, EVENT_HERE());
    EVENT_KEEP_FRAME();
}

EXPORT void cfree(void *block) {
    if (event_record_free(block, EVENT_HERE())) return real.cfree(block);
    free_unknown(block);
}

EXPORT void free_sized(void *block, size_t size) {
    if (event_record_free(block, EVENT_HERE())) return real.free_sized(block, size);
    free_unknown(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size) {
    if (event_record_free(block, EVENT_HERE()))
        return real.free_aligned_sized(block, alignment, size);
    free_unknown(block);
}

// After a call that had no memory: is there some now? malloc and calloc ask where they are
// recorded.
static COLD bool is_relieved(uintptr_t *frame) {
    return !gate_is_busy() && process_relieve((uintptr_t)frame);
}

// A bootstrap block cannot grow in place.
static COLD void *realloc_bootstrap(void *block, size_t size) {
    size_t old = bootstrap_size(block);
    void *moved = real.malloc(size);
    if (moved) memcpy(moved, block, old < size ? old : size);
    return moved;
}

// Without a block it is an allocation like any other: some programs (Lua) have no other.
static NOINLINE void *realloc_new(size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *block = real.realloc(NULL, size);
    event_inside_end(inside);
    block = event_record_alloc(block, size, EVENT_HERE());
    EVENT_KEEP_FRAME();
    return block;
}

static COLD void *realloc_rare(void *block, size_t size, uintptr_t *frame) {
    struct live_block old = resize_take(block, frame);
    bool inside = event_inside_begin((uintptr_t)frame);
    void *result = unlikely(bootstrap_owns(block)) ? realloc_bootstrap(block, size)
                                                   : real.realloc(block, size);
    event_inside_end(inside);
    if (unlikely(!result && size) && is_relieved(frame)) result = real.realloc(block, size);
    resize_book(block, old, result, size, frame);
    return result;
}

static NOINLINE void *realloc_unusual(void *block, struct live_block old, void *result, size_t size,
                                      uintptr_t *frame) {
    if (unlikely(!result && size) && is_relieved(frame)) result = real.realloc(block, size);
    resize_book(block, old, result, size, frame);
    return result;
}

// Apart, so that a new block does not pay for the registers that this one keeps.
static NOINLINE void *realloc_block(void *block, size_t size) {
    struct live_block old;
    void *result;
    if (unlikely(bootstrap_owns(block)) ||
        unlikely(!resize_take_usual(block, EVENT_HERE(), &old))) {
        result = realloc_rare(block, size, EVENT_HERE());
    } else {
        result = real.realloc(block, size);
        const struct resized done = {block, old, result, size};
        if (unlikely(!resize_book_usual(done, EVENT_HERE())))
            result = realloc_unusual(block, old, result, size, EVENT_HERE());
    }
    EVENT_KEEP_FRAME();
    return result;
}

// Both are hooks of their own, reached by a jump.
EXPORT void *realloc(void *block, size_t size) {
    gate_make_ready();
    return block ? realloc_block(block, size) : realloc_new(size);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    uintptr_t *frame = EVENT_HERE();
    size_t bytes = 0;
    gate_make_ready();
    bool is_overflow = __builtin_mul_overflow(count, size, &bytes);
    struct live_block old = resize_take(block, frame);
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *result = unlikely(bootstrap_owns(block) && !is_overflow)
                       ? realloc_bootstrap(block, bytes)
                       : real.reallocarray(block, count, size);
    event_inside_end(inside);
    resize_book(block, old, result, is_overflow ? SIZE_MAX : bytes, frame);
    return result;
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    int status = real.posix_memalign(result, alignment, size);
    if (unlikely(status == ENOMEM) && is_relieved(EVENT_HERE()))
        status = real.posix_memalign(result, alignment, size);
    event_inside_end(inside);
    event_record_aligned(status == 0 ? *result : NULL, size, alignment, EVENT_HERE());
    return status;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *block = real.aligned_alloc(alignment, size);
    if (unlikely(!block) && is_relieved(EVENT_HERE())) block = real.aligned_alloc(alignment, size);
    event_inside_end(inside);
    event_record_aligned(block, size, alignment, EVENT_HERE());
    return block;
}

EXPORT void *memalign(size_t alignment, size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *block = real.memalign(alignment, size);
    if (unlikely(!block) && is_relieved(EVENT_HERE())) block = real.memalign(alignment, size);
    event_inside_end(inside);
    event_record_aligned(block, size, alignment, EVENT_HERE());
    return block;
}

EXPORT void *valloc(size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *block = real.valloc(size);
    if (unlikely(!block) && is_relieved(EVENT_HERE())) block = real.valloc(size);
    event_inside_end(inside);
    event_record_aligned(block, size, sys_page_bytes(), EVENT_HERE());
    return block;
}

// pvalloc gives whole pages; what was asked for is counted, as everywhere.
EXPORT void *pvalloc(size_t size) {
    bool inside = event_inside_begin((uintptr_t)EVENT_HERE());
    void *block = real.pvalloc(size);
    if (unlikely(!block) && is_relieved(EVENT_HERE())) block = real.pvalloc(size);
    event_inside_end(inside);
    event_record_aligned(block, size, sys_page_bytes(), EVENT_HERE());
    return block;
}

// No event: wrapped since only the stand-ins know of guard bands.
EXPORT size_t malloc_usable_size(void *block) {
    return real.malloc_usable_size(block);
}

// Code and data may be gone after this. The program's result and errno pass through.
EXPORT int dlclose(void *handle) {
    memory_note_change();
    deepbind_look_if_expected();
    int result = real.dlclose(handle);
    int saved_errno = errno;
    memory_note_change();
    gate_code_unloaded((uintptr_t)EVENT_HERE());
    errno = saved_errno;
    return result;
}

// The library is marked as the one to be initialized first (INITFIRST), so that an allocator in the
// executable is led here before any other constructor allocates: then not even libc has been
// initialized. Where another library is so marked and loaded later (libpthread of glibc up
// to 2.33), that one is first, and this runs after libc's, as with libcs that know no such mark.
__attribute__((constructor)) static void start(int argument_count, char **arguments,
                                               char **variables) {
    (void)argument_count, (void)arguments;
    int saved_errno = errno;
    if (attach_is_by_tool()) {
        attach_loaded();
        wrap_offer();
    } else {
        environment_lend(variables);
        real_resolve();
        process_start();
        operators_lead();
        environment_lend(NULL);
    }
    errno = saved_errno;
}

__attribute__((destructor)) static void end(void) {
    int saved_errno = errno;
    deepbind_look_if_expected();
    process_end();
    errno = saved_errno;
}
