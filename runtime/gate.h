// SPDX-License-Identifier: Apache-2.0
// Per-thread state, and the gate that decides whether an event may be recorded now.
//
// Every rare state of a thread is carried by one word: its gate. Hot entries compare it with
// GATE_OPEN and nothing else; all other values go the slow way (gate_enter_slow). The words lie in
// memory that the kernel wipes in forked children (MADV_WIPEONFORK), so that a child made by any
// means, raw clone included, finds its gate closed and cannot touch its parent's recording. Leaving
// subtracts instead of storing: if a signal handler forked in the middle of an event, the child
// finishes that event without opening a gate that the fork has closed.
//
// While an event is worked on the gate is BUSY: an event of a signal handler that interrupts it is
// not recorded, but counted. If the handler jumped out of the event (longjmp), a later event finds
// no function of ours among its callers and takes over. `holder` is the address of the frame that
// made the gate BUSY: it tells a frame that is gone from one on the stack of a suspended coroutine.
//
// Slots: a thread takes a numbered slot with its tables and cells. The slot of a thread that no
// longer exists is taken over by a later one. Thread-local storage is two pointers.
#ifndef RUNTIME_GATE_H
#define RUNTIME_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/stack/intern.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/recall.h"
#include "runtime/unwind/walk.h"

enum gate_state {
    GATE_WIPED = 0,  // never opened, or wiped by fork
    GATE_OPEN = 1,
    GATE_BUSY = 2,    // cairn is at work
    GATE_INSIDE = 3,  // in a real allocation function that may call another hooked one
};

// A call that a real allocation function makes to a hooked one: the hook's return address, and how
// far its frame lies from the one that waits for the real function.
struct gate_inner_call {
    uintptr_t pc, distance_bytes;
};
enum { GATE_INNER_CALLS = 8 };

struct thread {
    uint32_t slot;
    uintptr_t holder;         // frame address of the event that is BUSY
    uintptr_t holder_return;  // the return address in that frame: changed once the frame is gone
    struct cairn_thread *record;
    // When net_bytes passes one of these, the event goes a slow way; see event.c.
    int64_t high_bytes, low_bytes;  // publish
    int64_t peak_bytes;             // a free from above this leaves a new peak
    int64_t published_bytes, published_blocks;
    uint64_t published_allocated, published_allocations;
    struct walk_seen seen;  // the last stack, with its cell
    struct walk_trace trace;
    struct recall recall;
    struct walk_trace *verify;  // see verify.h
    struct stack_thread stack;
    int32_t tid;
    uint32_t is_exiting;  // its exit was seen; the slot is free once the tid is gone
    struct gate_inner_call inner_calls[GATE_INNER_CALLS];  // found to be such, by a hash of pc
};

extern HIDDEN __thread struct thread *gate_self;  // NULL: none yet
extern HIDDEN __thread uint32_t *gate_word;       // enum gate_state; never NULL

// The way in for every state but GATE_OPEN. Returns the thread, BUSY, or NULL: do not record (the
// event is then already counted as lost, if it is a loss). `here` is the hook's frame address.
struct thread *gate_enter_slow(uintptr_t here);

// The gate was wiped between the look at it and the move: a signal handler forked there.
struct thread *gate_enter_wiped(uint32_t *word, uintptr_t here);

// Moves a gate by one instruction: whatever a signal handler does, it does before or after.
ALWAYS_INLINE void gate_move(uint32_t *word, uint32_t by) {
#if defined(__x86_64__)
    __asm__ volatile("addl %1, %0" : "+m"(*word) : "ri"(by) : "cc");
#else
    __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
#endif
}

// Notes whose event it is, for whoever has to decide whether it still goes on.
ALWAYS_INLINE void gate_hold(struct thread *thread, uintptr_t here) {
    thread->holder = here;
    thread->holder_return = ((const uintptr_t *)here)[1];
    compiler_barrier();
}

// The thread, BUSY, or NULL. Must be followed by gate_leave.
ALWAYS_INLINE struct thread *gate_enter(uintptr_t here) {
    struct thread *thread = gate_self;
    uint32_t *word = gate_word;
    if (unlikely(*word != GATE_OPEN)) return gate_enter_slow(here);
    // Before the move, so that a handler that jumps out right after it leaves a true holder; and
    // again, since a handler's own event may have come in between.
    gate_hold(thread, here);
    gate_move(word, GATE_BUSY - GATE_OPEN);
    if (unlikely(*word != GATE_BUSY)) return gate_enter_wiped(word, here);
    gate_hold(thread, here);
    return thread;
}

ALWAYS_INLINE void gate_leave(void) {
    compiler_barrier();
    *gate_word -= GATE_BUSY - GATE_OPEN;
}

// Around a real function that may itself call a hooked one: those calls are not events. Returns
// what gate_inside_end needs, which an exception (operator new) may leave out: see gate_enter_slow.
ALWAYS_INLINE bool gate_inside_begin(uintptr_t here) {
    if (*gate_word != GATE_OPEN) return false;
    gate_hold(gate_self, here);
    gate_move(gate_word, GATE_INSIDE - GATE_OPEN);
    compiler_barrier();
    if (likely(*gate_word == GATE_INSIDE)) return true;
    *gate_word = GATE_WIPED;
    return false;
}
ALWAYS_INLINE void gate_inside_end(bool is_inside) {
    compiler_barrier();
    if (is_inside) *gate_word -= GATE_INSIDE - GATE_OPEN;
}

// Opens the recording if that has not been tried; from the constructor and the first event.
void gate_start(void);

// The process ends: from the destructor.
void gate_end(void);

// Threads that have a slot, ended ones included until their slot is taken over. At least 1.
uint32_t gate_thread_count(void);

// Counts a loss, from any thread.
void gate_count_loss(enum cairn_loss loss);

// True where recording of allocations is switched on.
bool gate_is_recording(void);

// After the program unloaded code.
void gate_code_unloaded(uintptr_t here);

#endif
