// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/quiesce.h"

#include <stdlib.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/proc/process.h"

enum { AWAIT_PAUSE_US = 1000, REHEARSED_MOST = 8 };

typedef ARRAY(pid_t) thread_list;

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
    bool is_any = false;
    for (size_t i = 0; i < attach->threads.stopped.count && !is_any; i++)
        is_any = is_inside(attach, &attach->threads.stopped.items[i]);
    return is_any;
}

static void read_threads(pid_t pid, thread_list *list) {
    struct process_list threads;
    list->count = 0;
    process_list_threads(&threads, pid);
    for (pid_t tid; (tid = process_list_next(&threads));) {
        pid_t *slot = array_push(list);
        if (slot) *slot = tid;
    }
    process_list_close(&threads);
}

static bool has(const thread_list *list, pid_t tid) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == tid) return true;
    return false;
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

void quiesce_await(struct attach *attach, uint64_t end_ns) {
    thread_list there = {0}, outside = {0};
    bool is_any = true;
    while (is_any && clock_now_ns() < end_ns) {
        is_any = false;
        read_threads(attach->pid, &there);
        for (size_t i = 0; i < there.count; i++) {
            pid_t tid = there.items[i], *slot;
            if (has(&outside, tid)) continue;
            if (!see_outside(attach, tid))
                is_any = true;
            else if ((slot = array_push(&outside)))
                *slot = tid;
        }
        if (is_any) usleep(AWAIT_PAUSE_US);
    }
    array_free(&there);
    array_free(&outside);
}

void quiesce_rehearse(struct attach *attach) {
    thread_list there = {0};
    read_threads(attach->pid, &there);
    for (size_t i = 0; i < there.count && i < REHEARSED_MOST; i++) {
        if (!stop_one(attach, there.items[i])) continue;
        struct stopped_thread seen = attach->threads.stopped.items[0];
        threads_go(&attach->threads, 0);
        session_count_pause(attach);
        remote_unwind_rehearse(attach->unwinder, &seen);
    }
    array_free(&there);
}
