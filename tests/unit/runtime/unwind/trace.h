// SPDX-License-Identifier: Apache-2.0
// One stack, walked from the same place by three: the runtime with its memory of the last trace,
// the runtime without, and libgcc.
#ifndef TESTS_UNIT_RUNTIME_UNWIND_TRACE_H
#define TESTS_UNIT_RUNTIME_UNWIND_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "format/format.h"
#include "runtime/unwind/walk.h"

enum { TRACE_MAX = 8192 };

struct trace {
    struct walk_trace memory, full;
    struct walk_result result;
    bool has_one_range;           // the full walk knows as much of the stack as the one with memory
    uintptr_t before[TRACE_MAX];  // the trace before, outermost first
    uint32_t before_count;
    uintptr_t libgcc[TRACE_MAX];  // innermost first
    uint32_t libgcc_count;
};

static inline void trace_init(struct trace *trace) {
    memset(trace, 0, sizeof *trace);
    if (!walk_trace_init(&trace->memory, TRACE_MAX)) abort();
    if (!walk_trace_init(&trace->full, TRACE_MAX)) abort();
}

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
static __attribute__((noinline)) void trace_take(struct trace *trace) {
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    struct walk_range known = trace->memory.range;
    trace->before_count = trace->memory.count;
    for (uint32_t i = 0; i < trace->before_count; i++)
        trace->before[i] = trace->memory.frames[i].pc;
    trace->result = walk_stack(&trace->memory, &start);
    walk_trace_reset(&trace->full);
    if (trace->has_one_range) trace->full.range = known;
    walk_stack(&trace->full, &start);
    trace->libgcc_count = 0;
    _Unwind_Backtrace(trace_visit, trace);
}

static inline uint32_t trace_count(const struct trace *trace) {
    return trace->full.count;
}

// The runtime's frames, innermost first.
static inline uintptr_t trace_pc(const struct trace *trace, uint32_t index) {
    return trace->full.frames[trace->full.count - 1 - index].pc;
}

// The pseudo frame that a cut stack ends in, or 0.
static inline uintptr_t trace_cut(const struct trace *trace) {
    uintptr_t outermost = trace->full.count ? trace->full.frames[0].pc : 0;
    return outermost < CAIRN_CUT_LIMIT ? outermost : 0;
}

// libgcc's trace begins with frames of trace_take itself, and it does not mark what it cut. True if
// the rest is the same.
static inline bool trace_is_as_libgcc(const struct trace *trace) {
    uint32_t skipped = 0, count = trace_count(trace) - (trace_cut(trace) != 0);
    while (skipped < trace->libgcc_count && trace->libgcc[skipped] != trace_pc(trace, 0)) skipped++;
    if (trace->libgcc_count - skipped != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (trace_pc(trace, i) != trace->libgcc[skipped + i]) return false;
    return true;
}

static inline bool trace_has_same_frames(const struct walk_trace *a, const struct walk_trace *b) {
    if (a->count != b->count || a->usable_count != b->usable_count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct frame *one = &a->frames[i], *other = &b->frames[i];
        if (one->stack != other->stack || one->pc != other->pc ||
            one->frame_slot != other->frame_slot || one->check_count != other->check_count ||
            one->rule != other->rule)
            return false;
    }
    return true;
}

// True if the remembered trace is what the full walk found, with the same words to check, and what
// it says is kept was there before.
static inline bool trace_is_as_full(const struct trace *trace) {
    const struct walk_trace *memory = &trace->memory, *full = &trace->full;
    uint32_t keep = trace->result.keep;
    if (!trace_has_same_frames(memory, full)) return false;
    if (keep > trace->before_count || keep > memory->count) return false;
    for (uint32_t i = 0; i < keep; i++)
        if (memory->frames[i].pc != trace->before[i]) return false;
    uint32_t check_count = full->count ? full->frames[full->count - 1].check_count : 0;
    for (uint32_t i = 0; i < check_count; i++)
        if (memory->checks[i].slot != full->checks[i].slot ||
            memory->checks[i].value != full->checks[i].value)
            return false;
    return true;
}

static inline void trace_print_walk(const char *name, const struct walk_trace *trace) {
    fprintf(stderr, "%s: %u frames, %u usable\n", name, trace->count, trace->usable_count);
    for (uint32_t i = trace->count; i-- > 0;)
        fprintf(stderr, "%4u pc %14lx stack %14lx slot %14lx checks %u rule %x\n", i,
                trace->frames[i].pc, trace->frames[i].stack, (long)trace->frames[i].frame_slot,
                trace->frames[i].check_count, trace->frames[i].rule);
    for (uint32_t i = 0; trace->count && i < trace->frames[trace->count - 1].check_count; i++)
        fprintf(stderr, "     %14lx was %14lx\n", (long)trace->checks[i].slot,
                trace->checks[i].value);
}

static inline void trace_print(const struct trace *trace) {
    fprintf(stderr, "kept %u of %u\n", trace->result.keep, trace->before_count);
    trace_print_walk("with memory", &trace->memory);
    trace_print_walk("without", &trace->full);
    for (uint32_t i = 0; i < trace->libgcc_count; i++)
        fprintf(stderr, "libgcc %14lx\n", trace->libgcc[i]);
}

#endif
