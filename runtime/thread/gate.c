// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread/gate.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "runtime/live/live.h"
#include "runtime/process/state.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/module.h"
#include "runtime/thread/holder.h"
#include "runtime/thread/slots.h"
#include "runtime/unwind/unwind_cache.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

uint32_t thread_no_slot = THREAD_NO_WORD;
struct cairn_sizes thread_no_sizes;

void thread_forget(struct thread *thread) {
    thread->seen.frame = NULL;
    thread->seen.value = 0;
    thread->near.start = LIVE_NEAR_NONE;
    thread->at.sizes = &thread_no_sizes;
    thread->last.word = THREAD_NO_WORD + 1;  // of no block either
    thread_keep_last(thread, NULL);
}

static struct gate_line closed_line;  // never registered
static struct thread nobody = {.holder.frame = GATE_INSIDE, .line = &closed_line};
__thread struct thread *gate_self = &nobody;

APART struct gate_page gate_page;
static uint32_t last_stamp;  // (atomic) not wiped: a child goes on from its parent's
static bool is_wiped_by_kernel;
static APART bool is_start_late;  // (atomic) one waited in vain for the thread that opens

// Two threads may store in the other order: both are stamps that no thread had before.
static void stamp_move(void) {
    uint32_t stamp = __atomic_add_fetch(&last_stamp, 1, __ATOMIC_RELAXED);
    if (stamp == GATE_NO_STAMP) stamp = __atomic_add_fetch(&last_stamp, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&gate_page.stamp, stamp, __ATOMIC_RELEASE);
}

void gate_stamp_begin(void) {
    long result =
        sys_call(SYS_madvise, (long)&gate_page, sizeof gate_page, MADV_WIPEONFORK, 0, 0, 0);
    is_wiped_by_kernel = result == 0;
    stamp_move();
}

// The stamp leads the next event to gate_enter_slow, in the child as well. A parent that is asked
// there is known by its number, and asked no more.
void gate_expect_fork(void) {
    if (is_wiped_by_kernel || process_state() != PROCESS_RECORDING) return;
    gate_self->forker_pid = sys_pid();
    stamp_move();
}

COLD bool gate_is_forked(void) {
    int32_t forker = gate_self->forker_pid;
    gate_self->forker_pid = 0;
    return sys_pid() != forker;
}

void gate_stamp_wipe(void) {
    gate_page.stamp = GATE_NO_STAMP;
}

int32_t *gate_wiped_pid(void) {
    return is_wiped_by_kernel ? &gate_page.pid : NULL;
}

void gate_forget_rules(void) {
    rule_forget_all();
    stamp_move();
}

struct thread *gate_nobody(void) {
    return &nobody;
}

void gate_count_loss(enum cairn_loss loss) {
    if (sink.header) __atomic_fetch_add(&sink.header->lost[loss], 1, __ATOMIC_RELAXED);
}

// This library's code, as the linker knows it.
#if defined(CAIRN_STATIC)
extern HIDDEN const char __start_cairn_text[], __stop_cairn_text[];
static const char *const own_code_start = __start_cairn_text, *const own_code_end =
                                                                  __stop_cairn_text;
#else
extern HIDDEN const char __ehdr_start[], etext[];
static const char *const own_code_start = __ehdr_start, *const own_code_end = etext;
#endif

bool gate_is_own_code(uintptr_t pc) {
    return pc >= (uintptr_t)own_code_start && pc <= (uintptr_t)own_code_end;
}

uint64_t gate_own_code_bytes(void) {
    return (uint64_t)(own_code_end - own_code_start);
}

// A handler that jumped out of an event (longjmp) left the gate BUSY or INSIDE.
static enum holder_nesting nesting_of(const struct thread *thread, uintptr_t here) {
    const struct holder_look look = {.frame = thread->holder.frame & ~GATE_MARKS,
                                     .return_address = thread->holder.return_address,
                                     .here = here,
                                     .live = (uintptr_t)__builtin_frame_address(0),
                                     .code_start = (uintptr_t)own_code_start,
                                     .code_end = (uintptr_t)own_code_end,
                                     .known = thread->trace.range};
    return holder_look(&look);
}

static struct thread *gate_take_over(struct thread *thread, uintptr_t here) {
    if (thread->trace.range.has_new_code) gate_forget_rules();  // walked, but not noted
    thread_forget(thread);
    stack_cache_reset(&thread->recall);
    stack_thread_recover(&thread->stack);
    walk_trace_reset(&thread->trace);
    thread->trace.range.has_new_code = false;
    thread->log.flags = 0;
    gate_hold(thread, gate_holder_of(here));
    return thread;
}

// The stamp has moved, and the thread was not forked: read once, since a handler may fork now.
static struct thread *gate_enter_stale(struct thread *thread, uintptr_t here, uint32_t stamp) {
    gate_hold(thread, gate_holder_of(here));
    gate_stamp(thread, stamp);
    return thread;
}

static struct thread *gate_enter_busy(struct thread *thread, uintptr_t here) {
    if (nesting_of(thread, here) == HOLDER_GONE) return gate_take_over(thread, here);
    gate_count_loss(CAIRN_LOST_NESTED);
    return NULL;
}

static uintptr_t allocator_start, allocator_end;  // (atomic) of its module, once it is asked for

void gate_note_allocator(uintptr_t start, uintptr_t end) {
    __atomic_store_n(&allocator_start, start, __ATOMIC_RELAXED);
    __atomic_store_n(&allocator_end, end, __ATOMIC_RELAXED);
}

static bool is_of_allocator(uintptr_t pc) {
    return pc >= __atomic_load_n(&allocator_start, __ATOMIC_RELAXED) &&
           pc < __atomic_load_n(&allocator_end, __ATOMIC_RELAXED);
}

// The allocator's operator new found no memory and called the program: what a new handler does, and
// the exception that is thrown at last, are events like all others. The gate stays open until the
// operator returns.
static NOINLINE struct thread *gate_enter_called_back(struct thread *thread, uintptr_t here) {
    gate_open(thread);
    struct thread *entered = gate_enter_open(here);
    uint32_t stamp = __atomic_load_n(&gate_page.stamp, __ATOMIC_ACQUIRE);
    return entered ? entered : gate_enter_stale(thread, here, stamp);
}

// Mostly a call by the real function, and then one like others before: operator new calls malloc.
static struct thread *gate_enter_inside(struct thread *thread, uintptr_t here) {
    const unsigned pc_shift = 4;
    uintptr_t pc = ((const uintptr_t *)here)[1], distance = thread->holder.frame - here;
    if ((thread->holder.frame & GATE_OPERATOR) && !is_of_allocator(pc))
        return gate_enter_called_back(thread, here);
    struct gate_inner_call *known = &thread->inner_calls[(pc ^ pc >> pc_shift) % GATE_INNER_CALLS];
    if (known->pc == pc && known->distance_bytes == distance) return NULL;
    switch (nesting_of(thread, here)) {
    case HOLDER_GONE:
        return gate_take_over(thread, here);
    case HOLDER_HANDLER:
        gate_count_loss(CAIRN_LOST_NESTED);
        return NULL;
    case HOLDER_CALL:
        known->pc = 0;
        compiler_barrier();
        known->distance_bytes = distance;
        compiler_barrier();
        known->pc = pc;
    }
    return NULL;
}

// A thread is taking its slot or giving it up, and this event is part of that or of a handler that
// interrupted it, and then counts as lost. A handler that jumped out of it left the mark behind.
static bool is_registration_alive(uintptr_t here) {
    if (process_state() != PROCESS_RECORDING) return true;
    struct walk_start start = walk_start_of((const uintptr_t *)here);
    struct walk_range known = {.low = here, .high = here + 2 * sizeof here};
    struct walk_search search = {.code_start = (uintptr_t)own_code_start,
                                 .code_end = (uintptr_t)own_code_end};
    if (!sys_is_confined()) known.low = known.high = 0;
    walk_search(&search, &start, known);
    if (search.has_met_signal && search.has_met_code) gate_count_loss(CAIRN_LOST_NESTED);
    return search.has_met_code || !search.is_complete;
}

// Events of a thread without a slot until it tries again to get one.
enum { REGISTER_EVERY = 4096 };

static struct thread *thread_register(uintptr_t here) {
    static __thread uint32_t wait;
    struct thread *thread = wait ? NULL : slots_register(here);
    if (!thread) gate_count_loss(CAIRN_LOST_NO_THREAD);
    wait = thread ? 0 : (wait + REGISTER_EVERY - 1) % REGISTER_EVERY;
    return thread;
}

// Waits for another thread that opens the recording, where no constructor did before there were
// any: events meanwhile would be missing. In vain it is done once: a child that was forked
// meanwhile has no such thread.
static COLD void await_start(void) {
    enum { YIELDS = 20, TRIES = 400, SLEEP_NS = 500000 };
    const struct timespec pause = {0, SLEEP_NS};
    for (int i = 0; process_state() == PROCESS_STARTING && !sys_is_confined(); i++) {
        if (i == TRIES) __atomic_store_n(&is_start_late, true, __ATOMIC_RELAXED);
        if (__atomic_load_n(&is_start_late, __ATOMIC_RELAXED)) return;
        if (i < YIELDS)
            sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        else
            sys_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    }
}

// A thread's first event, or the first of a forked child.
static struct thread *gate_enter_new(uintptr_t here) {
    if (slots_is_moving && is_registration_alive(here)) return NULL;
    slots_is_moving = true;
    struct thread *thread = NULL;
    if (process_state() == PROCESS_NEW) process_start();
    if (unlikely(process_state() == PROCESS_STARTING) && !process_is_starter()) await_start();
    if (slots_is_wiped()) process_start_forked();
    if (process_state() == PROCESS_RECORDING) thread = thread_register(here);
    slots_is_moving = false;
    return thread;
}

COLD struct thread *gate_enter_slow(uintptr_t here) {
    struct thread *self = gate_self, *thread = NULL;
    if (unlikely(self->forker_pid)) slots_is_wiped();
    uint32_t stamp = __atomic_load_n(&gate_page.stamp, __ATOMIC_ACQUIRE);
    if (process_state() == PROCESS_INERT) return NULL;
    int saved_errno = errno;
    if (!self->line->is_registered || stamp == GATE_NO_STAMP)
        thread = gate_enter_new(here);
    else if (!self->holder.frame)
        thread = gate_enter_stale(self, here, stamp);
    else if (self->holder.frame & GATE_INSIDE)
        thread = gate_enter_inside(self, here);
    else
        thread = gate_enter_busy(self, here);
    errno = saved_errno;
    return thread;
}

void gate_code_unloaded(uintptr_t here) {
    struct thread *thread = gate_enter(here);
    if (!thread) return;
    if (module_check_unloaded()) gate_forget_rules();
    gate_leave(thread);
}
