// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/limits.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "format/events.h"
#include "runtime/inject/attach.h"
#include "runtime/live/live.h"
#include "runtime/process/settings.h"
#include "runtime/process/start.h"
#include "runtime/process/state.h"
#include "runtime/record/totals.h"
#include "runtime/sample/blocks.h"
#include "runtime/sink/sink.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"
#include "runtime/unwind/unwind_cache.h"

// Limits below which nothing more is recorded (tests/promises/limits.py). Chunks of an event log
// come on top.
static const uint64_t space_least = 30u << 20, data_least = 16u << 20;

// Limits above which a forked child need not give anything back: it inherits less.
static const uint64_t space_ample = 32ull << 30, data_ample = 2ull << 30;

struct limits {
    uint64_t space_bytes, data_bytes;  // UINT64_MAX: none
};
static struct limits known = {UINT64_MAX, UINT64_MAX};
static bool is_given_back;  // what this process had, which is not recorded

static struct limits limits_now(void) {
    return (struct limits){sys_limit(RLIMIT_AS), sys_limit(RLIMIT_DATA)};
}

bool limits_are_set(void) {
    return known.space_bytes != UINT64_MAX || known.data_bytes != UINT64_MAX;
}

bool limits_are_small(void) {
    const uint64_t enough = 512u << 20;
    return known.space_bytes < enough || known.data_bytes < enough;
}

static uint64_t log_bytes(void) {
    return settings.has_events ? sink_region(CAIRN_SECTION_EVENTS).capacity_bytes : 0;
}

static bool are_tight(struct limits limits) {
    return limits.space_bytes < space_least + log_bytes() || limits.data_bytes < data_least;
}

// As far as the kernel says; the directory has a link more for each thread.
static bool is_alone(void) {
    const unsigned plain_links = 2;
    struct stat tasks;
    return sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&tasks, 0, 0, 0) ==
               0 &&
           tasks.st_nlink == plain_links + 1;
}

// A child of vfork: its limits are its own, but the memory is its parent's.
static bool is_in_parents_memory(void) {
    long parent = sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
    return sys_call(SYS_kcmp, sys_pid(), parent, KCMP_VM, 0, 0, 0) == 0;
}

// Nothing of this thread's is under way. Guard bands lie around blocks that are still in use.
static bool may_give_back(void) {
    bool is_idle = gate_self == gate_nobody() || !gate_self->holder.frame;
    return is_idle && !slots_is_moving && !settings.guard_bytes && !attach_is_by_tool() &&
           is_alone();
}

// Gives back memory in a process that is not recorded. There remain tables of what the program
// itself makes through the interface, and buffers of few KiB.
static void give_back(void) {
    is_given_back = true;
    slots_release();
    live_release();
    blocks_release();
    rule_release();
}

static bool is_inert_and_full(void) {
    return process_state() == PROCESS_INERT && !is_given_back;
}

static void give_back_if_inert(void) {
    if (is_inert_and_full() && may_give_back()) give_back();
}

// The recording ends although the process goes on.
static void stop(uintptr_t here) {
    struct cairn_header *header = sink.header;
    struct thread *thread = gate_enter(here);
    if (!thread) return;
    totals_publish(thread, 0, 0);
    gate_leave(thread);
    gate_count_loss(CAIRN_LOST_REST);
    sink_stop();
    if (!process_move(PROCESS_RECORDING, PROCESS_INERT)) return;
    give_back();
    sink.header = NULL;
    sink_unmap(header);
}

static void begin_child(uintptr_t here) {
    struct thread *thread = gate_enter_slow(here);
    if (thread) gate_leave(thread);
}

// False if nothing has to be given back.
static bool meet_in_child(uintptr_t here) {
    if (known.space_bytes >= space_ample && known.data_bytes >= data_ample) return false;
    if (are_tight(known) && may_give_back())
        process_leave_unrecorded();
    else
        begin_child(here);
    return true;
}

static bool is_own_recording(void) {
    return process_state() == PROCESS_RECORDING && sys_pid() == (int)sink.header->pid;
}

static void meet(uintptr_t here) {
    if (process_state() == PROCESS_RECORDING && slots_is_wiped() && !meet_in_child(here)) return;
    give_back_if_inert();
    if (!is_own_recording()) return;
    process_release_space(known.space_bytes, known.data_bytes);
    if (are_tight(known) && may_give_back()) stop(here);
}

void limits_begin(void) {
    known = limits_now();
    if (!limits_are_set() || attach_is_by_tool()) return;
    give_back_if_inert();
    if (is_own_recording()) process_release_space(known.space_bytes, known.data_bytes);
}

void limits_note(int resource, uint64_t bytes, uintptr_t here) {
    if (is_in_parents_memory()) return;
    if (resource == RLIMIT_AS) known.space_bytes = bytes;
    if (resource == RLIMIT_DATA) known.data_bytes = bytes;
    if (bytes != UINT64_MAX) meet(here);
}

COLD bool process_relieve(uintptr_t here) {
    if (sys_is_confined() || process_state() == PROCESS_NEW) return false;
    struct limits now = limits_now();
    bool has_changed = now.space_bytes != known.space_bytes || now.data_bytes != known.data_bytes;
    if (!has_changed && !(is_inert_and_full() && limits_are_set())) return false;
    if (is_in_parents_memory()) return false;
    known = now;
    meet(here);
    return has_changed || is_given_back;
}
