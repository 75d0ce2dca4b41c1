// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/verify.h"

#include <signal.h>
#include <sys/syscall.h>

#include "runtime/check/check.h"
#include "runtime/thread/stack_memory.h"

// The trace of full walks; NULL without memory.
static struct walk_trace *verify_trace(struct thread *thread) {
    if (thread->verify) return thread->verify;
    struct walk_trace *trace = sys_reserve(sizeof *trace);
    if (!trace || !walk_trace_init(trace, stack_memory_limit())) return NULL;
    return thread->verify = trace;
}

static COLD void verify_fail(void) {
    static const char text[] = "cairn: the remembered stack and the full walk differ\n";
    sys_call(SYS_write, 2, (long)text, sizeof text - 1, 0, 0, 0);
    sys_call(SYS_tgkill, sys_pid(), sys_tid(), SIGABRT, 0, 0, 0);
}

void verify_cell(struct thread *thread, uintptr_t *frame, uint32_t cell) {
    struct walk_start start = walk_start_of(frame);
    struct walk_trace *trace = verify_trace(thread);
    if (!trace || cell == CAIRN_CELL_OTHER) return;
    walk_trace_reset(trace);
    walk_stack(trace, &start);
    check_walk(&start, trace->frames, trace->count);
    uint32_t count = region_stack_frame(&thread->nest, trace->frames, trace->count, trace->room);
    check_identity(cell, trace->frames, count);
    if (stack_find(&thread->stack, trace->frames, count) != cell) verify_fail();
}
