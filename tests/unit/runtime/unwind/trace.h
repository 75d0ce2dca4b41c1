// SPDX-License-Identifier: Apache-2.0
// One stack, walked by the runtime and by libgcc from the same place, and compared.
#ifndef TESTS_UNIT_RUNTIME_UNWIND_TRACE_H
#define TESTS_UNIT_RUNTIME_UNWIND_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unwind.h>

#include "format/format.h"
#include "runtime/unwind/walk.h"

enum { TRACE_MAX = 8192 };

struct trace {
    uintptr_t own[TRACE_MAX], libgcc[TRACE_MAX];
    uint32_t own_count, libgcc_count;
    struct walk_range range;
};

// Collects addresses in the form of the runtime: after the call, or one past an interrupted
// instruction's first byte.
static inline _Unwind_Reason_Code trace_visit(struct _Unwind_Context *context, void *data) {
    struct trace *trace = data;
    int is_before = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &is_before);
    if (!pc || trace->libgcc_count == TRACE_MAX) return _URC_END_OF_STACK;
    trace->libgcc[trace->libgcc_count++] = pc + (is_before != 0);
    return _URC_NO_REASON;
}

// Walks from the caller of this function, as a hook does.
static inline __attribute__((noinline)) void trace_take(struct trace *trace) {
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    trace->libgcc_count = 0;
    trace->own_count = walk_stack(&start, &trace->range, trace->own, TRACE_MAX).count;
    _Unwind_Backtrace(trace_visit, trace);
}

// libgcc's trace begins with frames of trace_take itself. True if the rest is the same.
static inline bool trace_is_equal(const struct trace *trace) {
    uint32_t skipped = 0;
    while (skipped < trace->libgcc_count && trace->libgcc[skipped] != trace->own[0]) skipped++;
    uint32_t rest = trace->libgcc_count - skipped;
    if (!trace->own_count || rest != trace->own_count) return false;
    for (uint32_t i = 0; i < rest; i++)
        if (trace->own[i] != trace->libgcc[skipped + i]) return false;
    return true;
}

static inline void trace_print(const struct trace *trace) {
    for (uint32_t i = 0; i < trace->own_count || i < trace->libgcc_count; i++)
        fprintf(stderr, "%3u %14lx %14lx\n", i, i < trace->own_count ? trace->own[i] : 0,
                i < trace->libgcc_count ? trace->libgcc[i] : 0);
}

// The pseudo frame that a cut stack ends in, or 0.
static inline uintptr_t trace_cut(const struct trace *trace) {
    uintptr_t last = trace->own_count ? trace->own[trace->own_count - 1] : 0;
    return last < CAIRN_CUT_LIMIT ? last : 0;
}

#endif
