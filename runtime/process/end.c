// SPDX-License-Identifier: Apache-2.0
// Apart from start.c, since attaching ends what it began, and start.c asks whether it did.
#include "runtime/process/end.h"

#include "runtime/live/live.h"
#include "runtime/process/own.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/guard.h"
#include "runtime/record/snapshots.h"
#include "runtime/record/totals.h"
#include "runtime/sample/blocks.h"
#include "runtime/sink/sink.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"

void process_end(void) {
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    struct thread *thread = gate_enter((uintptr_t)__builtin_frame_address(0));
    if (thread) {
        totals_publish(thread, 0, 0);  // the timeline's last point
        snapshots_take(CAIRN_SNAPSHOT_EXIT, NULL);
        gate_leave(thread);
    }
    guard_end();
    own_tell();
    sink_end();
}

#if defined(CAIRN_BARE)
// No destructor of ours runs in a static program: its last call of libc is this one. A vforked
// child is not at its parent's end.
void process_exit(void) {
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    if (!sys_is_confined() && sys_pid() == (int)sink.header->pid) process_end();
}
#else
// The tool waits for its end, and it has not been said yet.
static bool is_end_awaited(void) {
    return sink.header->control.end_wait_ms && sink.header->state != CAIRN_STATE_ENDED;
}

void process_exit(void) {
    bool has_bands = settings.guard_bytes && !sys_is_confined();
    if (process_state() != PROCESS_RECORDING || slots_is_wiped()) return;
    bool has_end = sink.is_file || (is_end_awaited() && !sys_is_confined());
    if ((!has_end && !has_bands) || sys_pid() != (int)sink.header->pid) return;
    if (has_bands) guard_end();
    if (has_end) sink_end();
}
#endif

void process_leave(void) {
    if (process_state() != PROCESS_RECORDING || slots_is_wiped() || !sink.is_file) return;
    if (sys_pid() == (int)sink.header->pid) sink_leave();
}
