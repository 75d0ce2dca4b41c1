// SPDX-License-Identifier: Apache-2.0
// The memory of a thread's last trace, and the trace as something to be seen again.
#include "runtime/sys/colour.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/unwind_cache.h"
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

// Offsets of the lists of a trace in its memory: the words from their colour on, then the frames,
// then those of a walk in progress. Before the first word and the first frame lies one more.
struct places {
    size_t frames, fresh, end;
};

static struct places places_of(size_t room) {
    struct places places;
    places.frames = COLOUR_CHECKS + (1 + room * CHECKS_PER_FRAME) * sizeof(struct walk_check);
    places.fresh = places.frames + (1 + room) * sizeof(struct frame);
    places.end = places.fresh + room * sizeof(struct fresh_frame);
    return places;
}

size_t walk_trace_bytes(uint32_t room) {
    return places_of(room).end;
}

uint32_t walk_cut_limit;

void walk_limit_depth(uint32_t frames) {
    walk_cut_limit = frames ? frames + 1 : 0;
}

// Leaves room for a region behind a stack that is cut.
static void limit_set(struct walk_trace *trace, uint32_t room) {
    uint32_t limit = room;
    if (walk_cut_limit) limit = walk_cut_limit < room ? walk_cut_limit : room - 1;
    trace->room = room;
    trace->limit = limit;
    trace->crowded = limit - 1;
}

void walk_list_shrink(void *start, size_t keep_bytes, size_t bytes) {
    uintptr_t from = sys_page_up((uintptr_t)start + keep_bytes);
    uintptr_t end = ((uintptr_t)start + bytes) / sys_page_bytes() * sys_page_bytes();
    if (from < end) sys_release((void *)from, end - from);
}

void walk_trace_shrink(struct walk_trace *trace, uint32_t room) {
    size_t old = trace->room, now = room;
    bool is_cut = trace->crowded == 0;
    limit_set(trace, room);
    if (is_cut) trace->crowded = 0;
    walk_list_shrink(trace->frames, now * sizeof *trace->frames, old * sizeof *trace->frames);
    walk_list_shrink(trace->checks, CHECKS_PER_FRAME * now * sizeof *trace->checks,
                     CHECKS_PER_FRAME * old * sizeof *trace->checks);
    walk_list_shrink(trace->fresh, now * sizeof *trace->fresh, old * sizeof *trace->fresh);
}

void walk_trace_place(struct walk_trace *trace, uint8_t *memory, uint32_t room) {
    struct places places = places_of(room);
    struct frame *frames = (struct frame *)(memory + places.frames);
    struct walk_check *checks = (struct walk_check *)(memory + COLOUR_CHECKS);
    *frames = (struct frame){.stack = UINTPTR_MAX};
    *checks = walk_check_end();
    trace->count = trace->usable_count = 0;
    compiler_barrier();
    trace->frames = frames + 1;
    trace->checks = checks + 1;
    trace->fresh = (struct fresh_frame *)(memory + places.fresh);
    compiler_barrier();
    limit_set(trace, room);
}

void walk_list_release(void *start, size_t bytes) {
    uintptr_t from = (uintptr_t)start / sys_page_bytes() * sys_page_bytes();
    uintptr_t end = sys_page_up((uintptr_t)start + bytes);
    if (start) sys_release((void *)from, end - from);
}

void walk_trace_release(struct walk_trace *trace) {
    const size_t room = trace->room;
    if (!trace->checks) return;
    walk_list_release((uint8_t *)(trace->checks - 1) - COLOUR_CHECKS,
                      COLOUR_CHECKS + (1 + room * CHECKS_PER_FRAME) * sizeof *trace->checks);
    walk_list_release(trace->frames - 1, (1 + room) * sizeof *trace->frames);
    walk_list_release(trace->fresh, room * sizeof *trace->fresh);
}

bool walk_trace_init(struct walk_trace *trace, uint32_t room) {
    uint8_t *memory = sys_reserve(walk_trace_bytes(room));
    *trace = (struct walk_trace){.limit = 0};
    if (memory) walk_trace_place(trace, memory, room);
    return memory != NULL;
}

void walk_trace_reset(struct walk_trace *trace) {
    trace->count = trace->usable_count = 0;
    trace->range.low = trace->range.high = trace->range.unreadable = trace->range.sure_high = 0;
}

#if defined(__aarch64__)
// The first of our own functions that was called with this frame as its frame pointer: what it
// saved beside is an address in the hook. (This library keeps frame pointers; see the Makefile.)
static uintptr_t code_of_hook(const uintptr_t *frame) {
    enum { CALLS_MAX = 64 };
    const uintptr_t *record = __builtin_frame_address(0);
    for (int i = 0; i < CALLS_MAX && record < frame; i++) {
        const uintptr_t *outer = (const uintptr_t *)record[0];
        if (outer == frame) return processor_code_address(record[1]);
        if (outer <= record) break;
        record = outer;
    }
    return 0;
}

// The owner of the frame is not known where the event is another's, interrupted on another stack:
// the stack pointer is then that behind the record, which only walk_search is asked about.
NOINLINE struct walk_start walk_start_of(const uintptr_t *frame) {
    uintptr_t pc = code_of_hook(frame), behind = 2 * sizeof(uintptr_t);
    uint64_t rule = pc ? rule_look_up(pc) : RULE_NONE;
    if (pc && rule_kind(rule) == RULE_NONE) rule = rule_find_slow(pc);
    if (rule_saves_frame(rule)) behind = rule_record_offset(rule);
    return (struct walk_start){frame[1], (uintptr_t)frame + behind, (uintptr_t *)frame};
}
#endif
