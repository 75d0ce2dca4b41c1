// SPDX-License-Identifier: Apache-2.0
// The gate that decides whether an event may be recorded now.
//
// Every rare state of a thread is carried by one word: its gate. Hot entries compare it with
// GATE_OPEN and nothing else; all other values go the slow way (gate_enter_slow). The words lie in
// memory that the kernel wipes in forked children (MADV_WIPEONFORK), so that a child made by any
// means, raw clone included, finds its gate closed and cannot touch its parent's recording. Leaving
// subtracts instead of storing: if a signal handler forked in the middle of an event, the child
// finishes that event without opening a gate that the fork has closed. GATE_OPEN is the highest
// number, so that entering carries over, and the carry alone tells that the gate was still open.
//
// While an event is worked on the gate is BUSY: an event of a signal handler that interrupts it is
// not recorded, but counted. If the handler jumped out of the event (longjmp), a later event finds
// no function of ours among its callers and takes over. `holder` is the address of the frame that
// made the gate BUSY: it tells a frame that is gone from one on the stack of a suspended coroutine.
#ifndef RUNTIME_THREAD_GATE_H
#define RUNTIME_THREAD_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/thread.h"

// Before the dynamic linker has given thread-local variables their values, gate_self is NULL: while
// it relocates the program, resolvers of indirect functions (IFUNC) may allocate. Hooks that ask
// the gate before they call a real function need this; so do those whose real function is not found
// yet.
ALWAYS_INLINE void gate_make_ready(void) {
    if (unlikely(!gate_self)) gate_self = gate_nobody();
}

ALWAYS_INLINE struct gate_line *gate_line(void) {
    return (struct gate_line *)gate_self->word;
}

// The way in for every state but GATE_OPEN. Returns the thread, BUSY, or NULL: do not record (the
// event is then already counted as lost, if it is a loss). `here` is the hook's frame address.
struct thread *gate_enter_slow(uintptr_t here);

// Moves an open gate by one instruction: whatever a signal handler does, it does before or after.
// False: it was not open but wiped, since a handler forked after the look at it.
ALWAYS_INLINE bool gate_move(uint32_t *word, enum gate_state to) {
    const uint32_t by = (uint32_t)to - GATE_OPEN;
#if defined(__x86_64__)
    bool was_open;
    __asm__ volatile("addl %2, %0" : "+m"(*word), "=@ccc"(was_open) : "ri"(by) : "memory");
    return was_open;
#else
    return __atomic_fetch_add(word, by, __ATOMIC_RELAXED) == GATE_OPEN;
#endif
}

// And back, likewise: a handler may have forked, and the child must not find the gate open.
ALWAYS_INLINE void gate_move_back(uint32_t *word, enum gate_state from) {
    const uint32_t by = (uint32_t)from - GATE_OPEN;
#if defined(__x86_64__)
    *word -= by;
#else
    __atomic_fetch_sub(word, by, __ATOMIC_RELAXED);
#endif
}

// Notes whose event it is, for code that has to decide whether it still goes on.
ALWAYS_INLINE void gate_hold(struct thread *thread, uintptr_t here, uintptr_t return_address) {
    thread->holder = here;
    thread->holder_return = return_address;
    compiler_barrier();
}

// From open to BUSY or INSIDE; false: it was not open, and nothing happened.
ALWAYS_INLINE bool gate_pass(struct thread *thread, uintptr_t here, enum gate_state to) {
    uint32_t *word = thread->word;
    if (unlikely(*word != GATE_OPEN)) return false;
    // Before the move, so that a handler that jumps out right after it leaves a true holder; and
    // again, since a handler's own event may have come in between.
    uintptr_t return_address = ((const uintptr_t *)here)[1];
    gate_hold(thread, here, return_address);
    if (unlikely(!gate_move(word, to))) {
        *word = GATE_WIPED;
        return false;
    }
    gate_hold(thread, here, return_address);
    return true;
}

// The thread, BUSY, if its gate is open; NULL: ask gate_enter_slow. Contains no call.
ALWAYS_INLINE struct thread *gate_enter_open(uintptr_t here) {
    struct thread *thread = gate_self;
    return likely(gate_pass(thread, here, GATE_BUSY)) ? thread : NULL;
}

// The thread, BUSY, or NULL. Must be followed by gate_leave.
ALWAYS_INLINE struct thread *gate_enter(uintptr_t here) {
    struct thread *thread = gate_enter_open(here);
    return likely(thread != NULL) ? thread : gate_enter_slow(here);
}

ALWAYS_INLINE void gate_leave(struct thread *thread) {
    compiler_barrier();
    gate_move_back(thread->word, GATE_BUSY);
}

// Around a real function that may itself call a hooked one: those calls are not events. Returns
// what gate_inside_end needs, which an exception (operator new) may leave out: see gate_enter_slow.
ALWAYS_INLINE bool gate_inside_begin(uintptr_t here) {
    struct thread *thread = gate_self;
    return likely(thread != NULL) && gate_pass(thread, here, GATE_INSIDE);
}
ALWAYS_INLINE void gate_inside_end(bool is_inside) {
    compiler_barrier();
    if (is_inside) gate_move_back(gate_self->word, GATE_INSIDE);
}

// Counts a loss, from any thread.
void gate_count_loss(enum cairn_loss loss);

// True where recording of allocations is switched on.
bool gate_is_recording(void);

// True of an address in this library.
bool gate_is_own_code(uintptr_t pc);

// After the program unloaded code.
void gate_code_unloaded(uintptr_t here);

#endif
