// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/quiesce.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/proc/process.h"

enum { AWAIT_PAUSE_US = 1000, REHEARSED_MOST = 8 };

// A thread that makes one needs some ten system calls for it; how long each is waited for, and then
// a stop.
enum { BIRTH_STOPS_MAX = 64, SYSTEM_CALL_STOP = SIGTRAP | 0x80 };
#define BIRTH_STEP_NS UINT64_C(2000000)
#define BIRTH_STOP_NS UINT64_C(2000000000)

static bool is_frame_in_way(const void *patch, uint64_t pc) {
    return patch_is_in_way(patch, pc);
}

static bool is_frame_inside(const void *context, uint64_t pc) {
    const struct attach *attach = context;
    return (pc >= attach->known.code_start && pc < attach->known.code_end) ||
           (attach->patch.items.count && patch_is_in_way(&attach->patch, pc));
}

static bool is_in_way(struct attach *attach, const struct stopped_thread *thread) {
    return remote_unwind_meets(attach->unwinder, thread, is_frame_in_way, &attach->patch);
}

bool quiesce_is_way_free(struct attach *attach) {
    bool is_free = true;
    for (size_t i = 0; i < attach->threads.stopped.count && is_free; i++)
        is_free = !is_in_way(attach, &attach->threads.stopped.items[i]);
    return is_free;
}

static bool is_inside(struct attach *attach, const struct stopped_thread *thread) {
    return remote_unwind_meets(attach->unwinder, thread, is_frame_inside, attach);
}

bool quiesce_is_any_inside(struct attach *attach) {
    thread_list *inside = &attach->inside;
    bool is_any = false;
    inside->count = 0;
    for (size_t i = 0; i < attach->threads.stopped.count; i++) {
        const struct stopped_thread *thread = &attach->threads.stopped.items[i];
        if (!is_inside(attach, thread)) continue;
        is_any = true;
        pid_t *slot = array_push(inside);
        if (slot) *slot = thread->tid;  // one that finds no room is met again at the next stop
    }
    return is_any;
}

void quiesce_list_threads(pid_t pid, thread_list *list) {
    struct process_list threads;
    list->count = 0;
    process_list_threads(&threads, pid);
    for (pid_t tid; (tid = process_list_next(&threads));) {
        pid_t *slot = array_push(list);
        if (slot) *slot = tid;
    }
    process_list_close(&threads);
}

// Stops one thread; false if there is nothing to see. One that waits in the kernel would not stop
// before that is over.
static bool stop_one(struct attach *attach, pid_t tid) {
    struct error unused;
    return process_state(attach->pid, tid) != 'D' &&
           threads_stop_one(&attach->threads, attach->pid, tid, &unused) &&
           attach->threads.stopped.count;
}

// False: it is still inside.
static bool see_outside(struct attach *attach, pid_t tid) {
    if (!stop_one(attach, tid)) return true;  // the stop of all threads will show
    bool is_outside = !is_inside(attach, &attach->threads.stopped.items[0]);
    threads_go(&attach->threads, 0);
    session_count_pause(attach);
    return is_outside;
}

// Looks at the threads of a list, one by one and again and again; those that `is_over` is true of
// leave it. False: some were left at `end_ns`.
static bool await_each(struct attach *attach, thread_list *list,
                       bool (*is_over)(struct attach *, pid_t), uint64_t end_ns) {
    for (;;) {
        size_t kept = 0;
        for (size_t i = 0; i < list->count; i++)
            if (!is_over(attach, list->items[i])) list->items[kept++] = list->items[i];
        list->count = kept;
        if (!kept) return true;
        if (clock_now_ns() > end_ns) return false;
        usleep(AWAIT_PAUSE_US);
    }
}

void quiesce_await(struct attach *attach, uint64_t end_ns) {
    await_each(attach, &attach->inside, see_outside, end_ns);
}

// The first thread goes on until it stops; false, with it stopped, for another reason than a system
// call that begins or ends, or none for so long.
static bool step_system_call(struct attach *attach, struct registers *now) {
    struct stopped_thread *thread = &attach->threads.stopped.items[0];
    if (ptrace(PTRACE_SYSCALL, thread->tid, NULL, (void *)(intptr_t)thread->signal) != 0)
        return false;
    thread->signal = 0;
    int status = threads_wait(thread->tid, BIRTH_STEP_NS);
    if (status < 0 && ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0)
        status = threads_wait(thread->tid, BIRTH_STOP_NS);
    if (status > 0 && WSTOPSIG(status) == SYSTEM_CALL_STOP) return registers_get(thread->tid, now);
    if (status > 0 && status >> 16 == 0) thread->signal = WSTOPSIG(status);
    return false;
}

// A thread that makes one goes on to the end of the system call by which that begins. What it makes
// after that has its memory from now on.
static bool see_birth(struct attach *attach) {
    struct registers now;
    for (int stops = 1; stops < BIRTH_STOPS_MAX && step_system_call(attach, &now); stops++) {
        int64_t number = registers_system_call(&now);
        bool is_end = stops % 2 == 0;
        if (is_end && (number == SYS_clone || number == SYS_clone3)) return true;
    }
    return false;
}

// False: it is still making a thread, or that is not known.
static bool see_made(struct attach *attach, pid_t tid) {
    if (!stop_one(attach, tid)) return process_has_ended(process_state(attach->pid, tid));
    const struct stopped_thread *thread = &attach->threads.stopped.items[0];
    bool is_made =
        !remote_unwind_thread(attach->unwinder, thread, 0, 0).is_making_thread || see_birth(attach);
    threads_go(&attach->threads, 0);
    session_count_pause(attach);
    return is_made;
}

bool quiesce_await_makers(struct attach *attach, uint64_t end_ns) {
    return await_each(attach, &attach->makers, see_made, end_ns);
}

void quiesce_rehearse(struct attach *attach) {
    thread_list there = {0};
    quiesce_list_threads(attach->pid, &there);
    for (size_t i = 0; i < there.count && i < REHEARSED_MOST; i++) {
        if (!stop_one(attach, there.items[i])) continue;
        struct stopped_thread seen = attach->threads.stopped.items[0];
        threads_go(&attach->threads, 0);
        session_count_pause(attach);
        remote_unwind_rehearse(attach->unwinder, &seen);
    }
    array_free(&there);
}
