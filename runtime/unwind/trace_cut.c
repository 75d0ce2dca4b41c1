// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/trace_cut.h"

#include <string.h>

// Words that the steps from some fresh frames read.
static uint32_t words_of(const struct fresh_frame *fresh, uint32_t count) {
    struct walk_check words[CHECKS_PER_FRAME];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += checks_put(words, 0, &fresh[i]);
    return sum;
}

// The first of the `count` frames from `to` on whose address is not that of its counterpart from
// `from` on; the number behind them: there is none.
static uint32_t first_other(const struct frame *frames, uint32_t from, uint32_t to,
                            uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (frames[from + i].pc != frames[to + i].pc) return to + i;
    return to + count;
}

// Moves a part to frame `to`; its words are now behind so many more. Differences of words wrap
// around.
static uint32_t move_part(struct frame *frames, struct trace_part part, uint32_t to,
                          uint32_t words) {
    const uint32_t count = part.last + 1 - part.first,
                   other = first_other(frames, part.first, to, count);
    struct frame *moved = frames + to;
    memmove(moved, frames + part.first, count * sizeof *frames);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; i++) moved[i].check_count += words;
    return other;
}

uint32_t trace_exchange_outer(struct walk_trace *trace, struct trace_part part,
                              const struct fresh_frame *outer, uint32_t count) {
    struct frame *frames = trace->frames;
    const uint32_t before = part.first ? frames[part.first - 1].check_count : 0;
    const uint32_t words = frames[part.last].check_count - before, more = words_of(outer, count);
    memmove(trace->checks + more, trace->checks + before, words * sizeof *trace->checks);
    uint32_t other = move_part(frames, part, count, more - before), check_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct fresh_frame *fresh = &outer[count - 1 - i];
        check_count = checks_put(trace->checks, check_count, fresh);
        if (i < other && frames[i].pc != fresh->frame.pc) other = i;
        frames[i] = fresh->frame;
        frames[i].check_count = check_count;
    }
    return other;
}

static bool is_readable(const struct walk_range *range, uintptr_t slot) {
    if (slot % sizeof(uintptr_t)) return false;
    return (slot >= range->low && slot < range->high) || sys_is_readable((const void *)slot);
}

// Says of the words that the step from a frame read, and of the frame pointer among them, that it
// lies elsewhere.
static void move_words(struct walk_trace *trace, const struct frame *frame,
                       const uintptr_t *const slots[2]) {
    uint32_t first = frame == trace->frames ? 0 : frame[-1].check_count;
    for (uint32_t i = first; i < frame->check_count; i++)
        if (trace->checks[i].slot == slots[0]) trace->checks[i].slot = slots[1];
}

// The same of a frame and those further out, up to one whose step reads the word, which it returns,
// or to one that sees another.
ALWAYS_INLINE struct frame *move_unread(const struct walk_trace *trace, struct frame *frame,
                                        const uintptr_t *const slots[2]) {
    const struct frame *const outermost = trace->frames;
    for (; frame >= outermost && frame->frame_slot == slots[0]; frame--) {
        if (unlikely(!rule_is_plain(frame->rule))) break;
        frame->frame_slot = slots[1];
    }
    return frame;
}

bool trace_move_slot(struct walk_trace *trace, uint32_t at, const uintptr_t *slot) {
    const uintptr_t *const slots[2] = {trace->frames[at].frame_slot, slot};
    struct frame *frame = &trace->frames[at];
    bool is_read = false;
    for (;; frame--) {
        frame = move_unread(trace, frame, slots);
        if (frame < trace->frames || frame->frame_slot != slots[0]) return true;
        if (!is_read && !is_readable(&trace->range, (uintptr_t)slot)) break;
        is_read = true;
        frame->frame_slot = slot;
        move_words(trace, frame, slots);
    }
    while (frame++ != &trace->frames[at]) frame->frame_slot = slots[0];  // none has used it
    return false;
}
