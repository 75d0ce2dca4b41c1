// SPDX-License-Identifier: Apache-2.0
// Per-thread state, and the gate that decides whether an event may be recorded now.
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
//
// Slots: a thread takes a numbered slot with its tables and cells. The slot of a thread that no
// longer exists is taken over by a later one. Thread-local storage is a pointer to the slot.
#ifndef RUNTIME_GATE_H
#define RUNTIME_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/nest.h"
#include "runtime/points.h"
#include "runtime/sample/blocks.h"
#include "runtime/sample/countdown.h"
#include "runtime/stack/intern.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/recall.h"
#include "runtime/unwind/walk.h"

enum gate_state {
    GATE_WIPED = 0,   // never opened, or wiped by fork
    GATE_BUSY = 2,    // cairn is at work
    GATE_INSIDE = 3,  // in a real allocation function that may call another hooked one
};
#define GATE_OPEN UINT32_MAX

// A call that a real allocation function makes to a hooked one: the hook's return address, and how
// far its frame lies from the one that waits for the real function.
struct gate_inner_call {
    uintptr_t pc, distance_bytes;
};
enum { GATE_INNER_CALLS = 8 };

// A thread's gate word, on a cache line of its own. Where allocations are sampled, `left_bytes`
// says how many more bytes pass without a look at anything else; it is not above 0 unless the
// thread is registered, in this process and not INSIDE (see sample/countdown.h).
struct gate_line {
    _Alignas(64) uint32_t word;  // enum gate_state
    int64_t left_bytes;
};

// What every event reads lies in the first two cache lines, and no line belongs to two threads.
struct thread {
    _Alignas(64) uint32_t *word;  // enum gate_state or GATE_OPEN; never NULL
    uint32_t slot;
    uintptr_t holder;         // frame address of the event that is BUSY
    uintptr_t holder_return;  // the return address in that frame: changed once the frame is gone
    struct cairn_thread *record;
    // When net_bytes passes one of these, the event goes a slow way; see event.c.
    int64_t high_bytes, low_bytes;  // publish
    int64_t peak_bytes;      // a free from above this leaves a new peak, the process' or a region's
    const void *last_block;  // the last one it allocated, until that is freed
    struct walk_seen seen;   // the last stack, with its cell
    struct walk_trace trace;
    int64_t total_peak_bytes;  // the process', if net_bytes is above this; else a region's (nest.h)
    int64_t published_bytes, published_blocks;
    uint64_t published_allocated, published_allocations;
    struct point_seen point;
    uint32_t call_count;  // its allocations, where blocks have ages
    struct recall recall;
    struct walk_trace *verify;     // see verify.h
    struct python_thread *python;  // with EVENT_PYTHON; NULL: not yet
    struct stack_thread stack;
    struct nest nest;
    int32_t tid;
    uint32_t is_exiting;  // its exit was seen; the slot is free once the tid is gone
    uint32_t next_free;   // of a slot that was given up: the next such slot + 1, or 0
    struct gate_inner_call inner_calls[GATE_INNER_CALLS];  // found to be such, by a hash of pc
    uint32_t bucket_cells[2];  // of blocks too small, too large for a stack; 0: none yet
    struct countdown countdown;
    struct sampled taken;  // by a realloc that is under way
    bool has_taken, has_chance;
};

// The calling thread; one with a gate that is never opened as long as it has no slot.
extern HIDDEN __thread struct thread *gate_self;

// The thread that gate_self points to before a slot is taken.
struct thread *gate_nobody(void);

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

// Notes whose event it is, for whoever has to decide whether it still goes on.
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
    return gate_pass(gate_self, here, GATE_INSIDE);
}
ALWAYS_INLINE void gate_inside_end(bool is_inside) {
    compiler_barrier();
    if (is_inside) gate_move_back(gate_self->word, GATE_INSIDE);
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

// True of an address in this library.
bool gate_is_own_code(uintptr_t pc);

// After the program unloaded code.
void gate_code_unloaded(uintptr_t here);

#endif
