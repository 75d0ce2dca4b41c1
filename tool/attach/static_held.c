// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/static_held.h"

#include <elf.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "tool/attach/static_start.h"
#include "tool/proc/process.h"

#define BIRTHS (PTRACE_O_TRACEVFORK | PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE)

static struct static_held *find(struct static_holds *holds, pid_t pid) {
    for (size_t i = 0; i < holds->items.count; i++)
        if (holds->items.items[i].tid == pid || holds->items.items[i].pid == pid)
            return &holds->items.items[i];
    return NULL;
}

static bool has_any(const struct static_holds *holds, enum static_held_state state) {
    for (size_t i = 0; i < holds->items.count; i++)
        if (holds->items.items[i].state == state) return true;
    return false;
}

static void forget(struct static_holds *holds, struct static_held *held) {
    *held = holds->items.items[--holds->items.count];
}

static void let_go(struct static_holds *holds, struct static_held *held, int signal) {
    ptrace(PTRACE_DETACH, held->tid, NULL, (void *)(intptr_t)signal);
    forget(holds, held);
}

static bool proceed(pid_t tid, int signal) {
    return ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal) == 0;
}

// Lets it go on without a stop for the processes that it makes from now on.
static void proceed_alone(pid_t tid) {
    ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXEC);
    proceed(tid, 0);
}

// ---- before the program is there ----------------------------------------------------------------

// A security module that gives programs rights of their own may refuse them to one that is traced.
static bool has_rights_by_program(pid_t pid) {
    enum { CONTEXT_BYTES = 256 };
    char context[CONTEXT_BYTES];
    bool is_there = process_read(pid, "attr/current", context, sizeof context);
    return is_there && strchr(context, ':') && !strstr(context, "unconfined");
}

// The thread by its number in its own name space; the only one of a process in another.
static pid_t thread_of(pid_t pid, uint64_t number) {
    char file[PROCESS_PATH_BYTES], name[NAME_MAX];
    snprintf(file, sizeof file, "task/%llu/comm", (unsigned long long)number);
    return process_read(pid, file, name, sizeof name) ? (pid_t)number : pid;
}

static void withdraw(struct static_holds *holds, pid_t pid) {
    struct static_held *held = find(holds, pid);
    if (!held || ptrace(PTRACE_INTERRUPT, held->tid, NULL, NULL) != 0) return;
    held->state = HELD_LEAVES;
}

void static_holds_hear(struct static_holds *holds, pid_t pid, const struct cairn_hello *message) {
    if (message->is_withdrawn) {
        withdraw(holds, pid);
        return;
    }
    if (find(holds, pid) || has_rights_by_program(pid)) return;
    struct static_held *held = array_push(&holds->items);
    if (!held) return;
    *held = (struct static_held){.pid = pid,
                                 .tid = thread_of(pid, message->attachment),
                                 .state = message->is_in_place ? HELD_STARTS : HELD_SPAWNS,
                                 .teller = pid,
                                 .message = *message};
    uintptr_t options = PTRACE_O_TRACEEXEC | (message->is_in_place ? 0 : BIRTHS);
    if (ptrace(PTRACE_SEIZE, held->tid, NULL, (void *)options) != 0) forget(holds, held);
}

// ---- its stops ----------------------------------------------------------------------------------

// The child of libc's making comes to its first stop and is named by its parent, in any order.
static void note_child(struct static_holds *holds, pid_t pid) {
    struct static_held *child = array_push(&holds->items);
    if (child) *child = (struct static_held){.pid = pid, .tid = pid, .state = HELD_CHILD};
}

static void note_birth(struct static_holds *holds, struct static_held *parent) {
    unsigned long number = 0;
    struct static_held known = *parent;
    ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &number);
    let_go(holds, parent, 0);
    struct static_held *child = find(holds, (pid_t)number);
    bool is_stopped = child != NULL;
    if (!child) child = array_push(&holds->items);
    if (!child) return;
    known.pid = known.tid = (pid_t)number;
    known.state = HELD_STARTS;
    *child = known;
    if (is_stopped) proceed_alone(child->tid);
}

static void become(struct static_holds *holds, struct static_held *held) {
    uint64_t linker = 0;
    held->tid = held->pid;
    bool is_dynamic = process_auxiliary(held->pid, AT_BASE, &linker) && linker;
    bool is_held = !is_dynamic && ptrace(PTRACE_INTERRUPT, held->tid, NULL, NULL) == 0 &&
                   proceed(held->tid, 0);
    if (is_held)
        held->state = HELD_BECOMES;
    else
        let_go(holds, held, 0);
}

static void begin(struct static_holds *holds, struct static_held *held) {
    struct error why;
    const struct static_held known = *held;
    if (static_start_record(held->pid, holds->library, holds->variables, &why))
        holds->recorded(holds->context, known.pid, known.teller, &known.message);
    let_go(holds, held, 0);
}

// Passes on what stopped it, but for the stops that were asked for.
static void pass_on(pid_t tid, int event, int signal) {
    bool is_group_stop = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
    if (is_group_stop)
        ptrace(PTRACE_LISTEN, tid, NULL, NULL);
    else
        proceed(tid, event ? 0 : signal);
}

static void note_stop(struct static_holds *holds, struct static_held *held, int event, int signal) {
    bool is_asked_for = event == PTRACE_EVENT_STOP && signal == SIGTRAP;
    bool is_birth =
        event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_CLONE;
    if (held->state == HELD_LEAVES)
        let_go(holds, held, event ? 0 : signal);
    else if (is_birth)
        note_birth(holds, held);
    else if (event == PTRACE_EVENT_EXEC)
        become(holds, held);
    else if (is_asked_for && held->state == HELD_BECOMES)
        begin(holds, held);
    else if (is_asked_for && held->state == HELD_STARTS)
        proceed_alone(held->tid);
    else
        pass_on(held->tid, event, signal);
}

// Children that nobody is left to name.
static void let_strangers_go(struct static_holds *holds) {
    if (has_any(holds, HELD_SPAWNS)) return;
    for (size_t i = holds->items.count; i-- > 0;)
        if (holds->items.items[i].state == HELD_CHILD) let_go(holds, &holds->items.items[i], 0);
}

bool static_holds_note(struct static_holds *holds, pid_t pid, int status) {
    if (!holds->items.count) return false;
    struct static_held *held = find(holds, pid);
    bool is_first = !held && WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP &&
                    has_any(holds, HELD_SPAWNS);
    bool is_stop = is_first || (held && WIFSTOPPED(status));
    if (is_first)
        note_child(holds, pid);
    else if (is_stop)
        note_stop(holds, held, status >> 16, WSTOPSIG(status));
    else if (held && !WIFCONTINUED(status))
        forget(holds, held);
    let_strangers_go(holds);
    return is_stop;
}

// Stops one that runs first; one that does not come to a stop soon is let go by the end of the
// tool.
static void end(const struct static_held *held) {
    enum { TRIES = 100, PAUSE_NS = 1000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int status = 0;
    if (ptrace(PTRACE_DETACH, held->tid, NULL, NULL) == 0 ||
        ptrace(PTRACE_INTERRUPT, held->tid, NULL, NULL) != 0)
        return;
    for (int i = 0; i < TRIES && waitpid(held->tid, &status, __WALL | WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
    bool is_signal = WIFSTOPPED(status) && !(status >> 16);
    ptrace(PTRACE_DETACH, held->tid, NULL, (void *)(intptr_t)(is_signal ? WSTOPSIG(status) : 0));
}

void static_holds_close(struct static_holds *holds) {
    for (size_t i = 0; i < holds->items.count; i++) end(&holds->items.items[i]);
    array_free(&holds->items);
}
