// SPDX-License-Identifier: Apache-2.0
// The memory of a thread's last trace, and the trace as something to be seen again.
#include "runtime/sys/colour.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/walk.h"

struct walk_seen walk_trace_seen(const struct walk_trace *trace, uint32_t value) {
    if (trace->count == 0 || trace->usable_count != trace->count)
        return (struct walk_seen){.value = value};
    const struct frame *top = &trace->frames[trace->count - 1];
    return (struct walk_seen){top->frame_slot, top->pc, trace->checks + top->check_count,
                              top->check_count, value};
}

static const uintptr_t end_words[2];

struct walk_check walk_check_end(void) {
    return (struct walk_check){(const uintptr_t *)((const char *)end_words + 1), 1};
}

// Of a trace with so many frames; one lies before them.
static size_t frames_bytes(size_t limit) {
    return (1 + limit) * sizeof(struct frame);
}

// The same; the list begins at its colour.
static size_t checks_bytes(size_t limit) {
    return COLOUR_CHECKS + (1 + limit * CHECKS_PER_FRAME) * sizeof(struct walk_check);
}

static uint8_t *checks_memory(const struct walk_trace *trace) {
    return (uint8_t *)(trace->checks - 1) - COLOUR_CHECKS;
}

static void tail_release(void *start, size_t keep_bytes, size_t bytes) {
    keep_bytes = sys_page_up(keep_bytes);
    if (keep_bytes < bytes) sys_release((uint8_t *)start + keep_bytes, bytes - keep_bytes);
}

void walk_trace_shrink(struct walk_trace *trace, uint32_t limit) {
    size_t old = trace->limit, now = limit;
    trace->limit = limit;
    tail_release(trace->frames - 1, frames_bytes(now), frames_bytes(old));
    tail_release(checks_memory(trace), checks_bytes(now), checks_bytes(old));
    tail_release(trace->fresh, now * sizeof *trace->fresh, old * sizeof *trace->fresh);
}

void walk_trace_release(struct walk_trace *trace) {
    const size_t limit = trace->limit;
    if (trace->frames) sys_release(trace->frames - 1, sys_page_up(frames_bytes(limit)));
    if (trace->checks) sys_release(checks_memory(trace), sys_page_up(checks_bytes(limit)));
    if (trace->fresh) sys_release(trace->fresh, sys_page_up(limit * sizeof *trace->fresh));
}

bool walk_trace_init(struct walk_trace *trace, uint32_t limit) {
    *trace = (struct walk_trace){.limit = limit};
    struct frame *frames = sys_reserve(frames_bytes(limit));
    uint8_t *checks = sys_reserve(checks_bytes(limit));
    trace->fresh = sys_reserve(limit * sizeof *trace->fresh);
    if (!frames || !checks || !trace->fresh) return false;
    *frames = (struct frame){.stack = UINTPTR_MAX};
    trace->frames = frames + 1;
    trace->checks = (struct walk_check *)(checks + COLOUR_CHECKS);
    *trace->checks++ = walk_check_end();
    return true;
}

void walk_trace_reset(struct walk_trace *trace) {
    trace->count = trace->usable_count = 0;
    trace->range.low = trace->range.high = trace->range.unreadable = trace->range.sure_high = 0;
}
