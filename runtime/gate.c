// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#include "runtime/live/live.h"
#include "runtime/sink/sink.h"
#include "runtime/slots.h"
#include "runtime/stack/module.h"
#include "runtime/start.h"
#include "runtime/totals.h"
#include "runtime/unwind/rule.h"

static uint32_t closed_word;  // of threads without a slot: never opened
__thread struct thread *gate_self;
__thread uint32_t *gate_word = &closed_word;

void gate_count_loss(enum cairn_loss loss) {
    if (sink.header) __atomic_fetch_add(&sink.header->lost[loss], 1, __ATOMIC_RELAXED);
}

uint32_t gate_thread_count(void) {
    return slots_count();
}

static bool is_on_signal_stack(void) {
    stack_t stack = {0};
    sys_call(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0);
    return stack.ss_flags & SS_ONSTACK;
}

// A handler that jumped out of an event (longjmp) left the gate BUSY. The event's frame is gone if
// the present one lies at its place or above it on the same stack.
static bool is_abandoned(const struct thread *thread, uintptr_t here) {
    const uintptr_t *held = (const uintptr_t *)thread->holder;
    if (!sys_is_readable(held + 1) || held[1] != thread->holder_return) return true;
    bool is_same_stack =
        thread->holder >= thread->trace.range.low && here < thread->trace.range.high;
    return is_same_stack && here >= thread->holder && !is_on_signal_stack();
}

static struct thread *gate_take_over(struct thread *thread, uintptr_t here) {
    stack_thread_recover(&thread->stack);
    walk_trace_reset(&thread->trace);
    thread->holder = here;
    thread->holder_return = ((const uintptr_t *)here)[1];
    *gate_word = GATE_BUSY;
    return thread;
}

static struct thread *gate_enter_busy(struct thread *thread, uintptr_t here) {
    if (!is_abandoned(thread, here)) {
        gate_count_loss(CAIRN_LOST_NESTED);
        return NULL;
    }
    return gate_take_over(thread, here);
}

// A thread's first event, or the first of a forked child.
static struct thread *gate_enter_new(uintptr_t here) {
    static __thread bool is_registering;
    if (is_registering) return NULL;
    is_registering = true;
    struct thread *thread = NULL;
    if (process_state() == PROCESS_NEW) process_start();
    if (slots_is_wiped()) process_start_forked();
    if (process_state() == PROCESS_RECORDING) {
        thread = slots_register();
        if (!thread) gate_count_loss(CAIRN_LOST_NO_THREAD);
    }
    if (thread) {
        thread->holder = here;
        thread->holder_return = ((const uintptr_t *)here)[1];
    }
    is_registering = false;
    return thread;
}

COLD struct thread *gate_enter_slow(uintptr_t here) {
    struct thread *thread = NULL;
    if (process_state() == PROCESS_INERT) return NULL;
    int saved_errno = errno;
    switch (*gate_word) {
    case GATE_INSIDE:
        if (is_abandoned(gate_self, here)) thread = gate_take_over(gate_self, here);
        break;
    case GATE_BUSY:
        thread = gate_enter_busy(gate_self, here);
        break;
    default:
        thread = gate_enter_new(here);
    }
    errno = saved_errno;
    return thread;
}

COLD struct thread *gate_enter_wiped(uint32_t *word, uintptr_t here) {
    *word = GATE_WIPED;
    return gate_enter_slow(here);
}

bool gate_is_recording(void) {
    return !__atomic_load_n(&sink.header->control.is_off, __ATOMIC_RELAXED);
}

void gate_start(void) {
    process_start();
}

void gate_end(void) {
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    struct thread *thread = gate_enter((uintptr_t)__builtin_frame_address(0));
    if (thread) {
        totals_publish(thread, 0, 0);  // the timeline's last point
        gate_leave();
    }
    sink.header->own_bytes = sys_own_bytes() - live_untouched_bytes();
    sink_end();
}

void gate_code_unloaded(void) {
    struct thread *thread = gate_enter((uintptr_t)__builtin_frame_address(0));
    if (!thread) return;
    if (module_check_unloaded()) rule_forget_all();
    gate_leave();
}
