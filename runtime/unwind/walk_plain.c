// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/walk_plain.h"

#include "runtime/sys/sys.h"
#include "runtime/unwind/trace_cut.h"
#include "runtime/unwind/unwind_cache.h"

// The old trace up to frame `at`, then the `count` fresh frames: the new trace. Returns how many
// outer frames have the same addresses as before.
static uint32_t trace_append(struct walk_trace *trace, uint32_t at, uint32_t count) {
    const uint32_t kept = at + 1;
    const struct fresh_frame *fresh = trace->fresh + count;
    struct frame *frame = trace->frames + kept, *const end = frame + count;
    const struct frame *same = frame, *const old_end = trace->frames + trace->count;
    while (same != end && same < old_end && same->pc == fresh[frame - same - 1].frame.pc) same++;
    uint32_t check_count = frame[-1].check_count;
    struct walk_check *check = trace->checks + check_count;
    for (; frame != end; frame++) {
        fresh--;
        *check++ = fresh->read;
        *frame = fresh->frame;
        frame->check_count = ++check_count;
    }
    trace->count = trace->usable_count = kept + count;
    return (uint32_t)(same - trace->frames);
}

// The frame at hand is one of the old trace: the rest of the stack is that of the trace, if the
// words agree that decide the way from there.
static uint32_t walk_meet(struct walk_trace *trace, struct plain_walk *walk) {
    uint32_t at = (uint32_t)walk->candidate;
    if (unlikely(trace->guessed_count)) return 0;
    if (trace->frames[at].frame_slot != walk->frame_slot &&
        !trace_move_slot(trace, at, walk->frame_slot))
        return 0;
    walk->differs = checks_verify(trace->checks, trace->frames[at].check_count);
    if (walk->differs || unlikely(at + 1 + walk->fresh_count >= trace->limit)) return 0;
    return trace_append(trace, at, walk->fresh_count);
}

uint32_t walk_plain(struct walk_trace *trace, struct plain_walk *walk) {
    // room for the frame at hand, and for the mark of a stack that is cut
    struct fresh_frame *fresh = trace->fresh, *const limit = fresh + trace->limit - 2;
    const struct frame *old = trace->frames + trace->usable_count - 1;
    const uintptr_t *frame_slot = walk->start->frame_slot;
    uintptr_t pc = walk->start->pc, stack = walk->start->stack, high = trace->range.high;
    bool is_met = false;
    for (; fresh < limit; fresh++) {
        while (old->stack < stack) old--;
        is_met = old->stack == stack && old->pc == pc;
        if (is_met) break;
        uint64_t rule = rule_look_up(pc);
        // Aligned as the stack pointer is, by which these rules go, and above it.
        uintptr_t cfa = stack + rule_cfa_offset(rule), saved = rule_saved_offset(rule);
        if (unlikely(!rule_is_plain(rule) || cfa > high)) break;
        fresh->frame.stack = stack;
        fresh->frame.pc = pc;
        fresh->frame.frame_slot = frame_slot;
        fresh->frame.rule = (uint32_t)rule;
        uintptr_t slot = cfa - rule_return_offset(rule);
        fresh->read = (struct walk_check){(const uintptr_t *)slot, sys_read_word(slot)};
        pc = processor_code_address(fresh->read.value);
        if (saved) frame_slot = (const uintptr_t *)(cfa - saved);
        stack = cfa;
    }
    walk->pc = pc;
    walk->stack = stack;
    walk->frame_slot = frame_slot;
    walk->fresh_count = (uint32_t)(fresh - trace->fresh);
    walk->candidate = old - trace->frames;
    return is_met ? walk_meet(trace, walk) : 0;
}
