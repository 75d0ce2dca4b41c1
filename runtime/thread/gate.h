// SPDX-License-Identifier: Apache-2.0
// The gate that decides whether an event may be recorded now.
//
// A hot entry looks at two things, and everything else goes the slow way (gate_enter_slow):
//
// The holder, of each thread. 0: the gate is open. Otherwise the hook's frame whose event is worked
// on (BUSY) or waits for a real function (INSIDE). An event of a signal handler that interrupts it
// is not recorded, but counted. If the handler jumped out of the event (longjmp), a later event
// finds no function of ours among its callers and takes over; the frame tells one that is gone from
// one on the stack of a suspended coroutine. One store makes the holder and one removes it, so
// whatever a handler does between two instructions, it finds either no holder or a true one, and
// leaves it so: its own events are over when it returns.
//
// The stamp, of the process. A thread may record as long as its own is the same. The process' lies
// in memory that the kernel wipes in forked children (MADV_WIPEONFORK), so a child made by any
// means, raw clone included, finds another and cannot touch its parent's recording. It is compared
// once the holder is there: if a handler forked in the middle of an event, the child finishes that
// event, opens its gate, and still has the wrong stamp. The stamp also moves when unwind rules are
// forgotten: then the thread's last stack means nothing any more, and the thread takes note.
#ifndef RUNTIME_THREAD_GATE_H
#define RUNTIME_THREAD_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/colour.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/thread.h"
#include "runtime/unwind/unwind_cache.h"

// Before the dynamic linker has given thread-local variables their values, gate_self is NULL: while
// it relocates the program, resolvers of indirect functions (IFUNC) may allocate. Hooks that ask
// the gate before they call a real function need this; so do those whose real function is not found
// yet.
ALWAYS_INLINE void gate_make_ready(void) {
    if (unlikely(!gate_self)) gate_self = gate_nobody();
}

ALWAYS_INLINE struct gate_line *gate_line(void) {
    return gate_self->line;
}

// The stamp of this process; GATE_NO_STAMP in a forked child. Alone on its page.
struct gate_page {
    _Alignas(SYS_PAGE_MOST) uint8_t unused[COLOUR_STAMP];
    uint32_t stamp;  // (atomic)
    int32_t pid;     // (atomic) of whoever wants to remember it; 0: not known
};
extern HIDDEN struct gate_page gate_page;

// A process that records begins with a stamp that no thread has; it is wiped in forked children
// from now on. And the same by hand, where the kernel does not wipe.
void gate_stamp_begin(void);
void gate_stamp_wipe(void);
// Where the number of the process may be kept (gate_page.pid); NULL: the kernel does not wipe.
int32_t *gate_wiped_pid(void);

// The calling thread is about to fork in a way that does not come back through us. Where the kernel
// does not wipe, its next event looks which process it is in.
void gate_expect_fork(void);

// Whether this is the child of such a fork; asked where forker_pid is set.
bool gate_is_forked(void);

// Unwind rules are no longer valid, nor is any thread's last stack.
void gate_forget_rules(void);

// The thread takes the stamp, which was read before; its last stack goes by the present rules.
ALWAYS_INLINE void gate_stamp(struct thread *thread, uint32_t stamp) {
    if (thread->trace.generation != rule_generation()) thread->seen.frame = NULL;
    thread->stamp = stamp;
}

// Is the gate of the calling thread BUSY? Is it open, is the thread registered in this process?
ALWAYS_INLINE bool gate_is_busy(void) {
    return gate_line()->is_registered && gate_self->holder.frame &&
           !(gate_self->holder.frame & GATE_INSIDE);
}
ALWAYS_INLINE bool gate_is_open(void) {
    return gate_line()->is_registered && !gate_self->holder.frame;
}
ALWAYS_INLINE bool gate_is_registered(void) {
    return gate_line()->is_registered;
}

// The way in where gate_enter_open finds none. Returns the thread, BUSY, or NULL: do not record
// (the event is then already counted as lost, if it is a loss). `here` is the hook's frame address.
struct thread *gate_enter_slow(uintptr_t here);

// Makes a hook's frame the holder, by one instruction: a store of both words.
ALWAYS_INLINE void gate_hold(struct thread *thread, struct gate_holder holder) {
    typedef uintptr_t both __attribute__((vector_size(2 * sizeof(uintptr_t)), may_alias));
    *(volatile both *)&thread->holder = (both){holder.frame, holder.return_address};
    compiler_barrier();
}

ALWAYS_INLINE struct gate_holder gate_holder_of(uintptr_t here) {
    return (struct gate_holder){here, ((const uintptr_t *)here)[1]};
}

ALWAYS_INLINE void gate_open(struct thread *thread) {
    compiler_barrier();
    *(volatile uintptr_t *)&thread->holder.frame = 0;
}

// The thread, BUSY, if its gate is open; NULL: ask gate_enter_slow. Contains no call.
ALWAYS_INLINE struct thread *gate_enter_open(uintptr_t here) {
    struct thread *thread = gate_self;
    if (unlikely(thread->holder.frame)) return NULL;
    gate_hold(thread, gate_holder_of(here));
    if (likely(thread->stamp == __atomic_load_n(&gate_page.stamp, __ATOMIC_RELAXED))) return thread;
    gate_open(thread);
    return NULL;
}

// The thread, BUSY, or NULL. Must be followed by gate_leave.
ALWAYS_INLINE struct thread *gate_enter(uintptr_t here) {
    struct thread *thread = gate_enter_open(here);
    return likely(thread != NULL) ? thread : gate_enter_slow(here);
}

ALWAYS_INLINE void gate_leave(struct thread *thread) {
    gate_open(thread);
}

// The place of the allocator with operators of its own: what they call elsewhere is the program's.
void gate_note_allocator(uintptr_t start, uintptr_t end);

// Around a real function that may itself call a hooked one: those calls are not events. `marks`:
// GATE_INSIDE, for an operator new GATE_MARKS. Returns
// what gate_inside_end needs, which an exception (operator new) may leave out: see gate_enter_slow.
// Asks the thread's own line, since a stamp that has moved makes no inner call an event.
ALWAYS_INLINE bool gate_inside_begin(uintptr_t here, uintptr_t marks) {
    struct thread *thread = gate_self;
    if (unlikely(!thread) || unlikely(thread->holder.frame)) return false;
    struct gate_holder holder = gate_holder_of(here);
    gate_hold(thread, (struct gate_holder){holder.frame | marks, holder.return_address});
    if (likely(thread->line->is_registered)) return true;
    gate_open(thread);
    return false;
}
ALWAYS_INLINE void gate_inside_end(bool is_inside) {
    if (is_inside) gate_open(gate_self);
}

// The same of a thread that is BUSY with this frame's event: it waits for the real function from
// one store to the next, and is BUSY again after it. NULL: the stamp has moved meanwhile, and the
// gate is open.
ALWAYS_INLINE void gate_wait(struct thread *thread, uintptr_t here) {
    compiler_barrier();
    *(volatile uintptr_t *)&thread->holder.frame = here | GATE_INSIDE;
    compiler_barrier();
}
ALWAYS_INLINE struct thread *gate_resume(uintptr_t here) {
    struct thread *thread = gate_self;
    gate_hold(thread, gate_holder_of(here));
    if (likely(thread->stamp == __atomic_load_n(&gate_page.stamp, __ATOMIC_RELAXED))) return thread;
    gate_open(thread);
    return NULL;
}

// Counts a loss, from any thread.
void gate_count_loss(enum cairn_loss loss);

// True where recording of allocations is switched on; and where, besides, the tool wants nothing of
// the process.
ALWAYS_INLINE bool gate_is_recording(void) {
    return !(__atomic_load_n(&sink.header->control.is_off, __ATOMIC_ACQUIRE) & CAIRN_CONTROL_OFF);
}
ALWAYS_INLINE bool gate_is_undisturbed(void) {
    return !__atomic_load_n(&sink.header->control.is_off, __ATOMIC_ACQUIRE);
}

// True of an address in this library.
bool gate_is_own_code(uintptr_t pc);
uint64_t gate_own_code_bytes(void);

// After the program unloaded code.
void gate_code_unloaded(uintptr_t here);

#endif
