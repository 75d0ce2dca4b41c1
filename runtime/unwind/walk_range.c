// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/walk_range.h"

#include "runtime/sys/sys.h"
#include "runtime/unwind/unwind_cache.h"

// Where a guess may not lead: to or beyond the thread's control block, which lies above the frames
// of every thread but the first, or far from what is known of the stack.
static bool is_guess_wild(const struct walk_range *range, uintptr_t end) {
    const uintptr_t largest_gap_bytes = 64u << 10;
    uintptr_t control_block = (uintptr_t)__builtin_thread_pointer();
    return end - range->high > largest_gap_bytes ||
           (range->unreadable && end > range->unreadable) ||
           (control_block > range->low && end > control_block);
}

// Makes [range.low, end) known readable, or says that it is not. No page is asked for twice: what
// was found readable stays so, and what was not ends all later guesses. Unwind information may ask
// for such a page again.
COLD bool range_extend_slow(struct walk_range *range, uintptr_t end, bool is_guessed) {
    const uintptr_t page_mask = sys_page_bytes() - 1;
    const uintptr_t largest_gap_bytes = 64u << 20;  // bigger frames than this are not believed
    if (end < range->low || end - range->high > largest_gap_bytes) return false;
    if (is_guessed && is_guess_wild(range, end)) return false;
    while (range->high < end) {
        if (!sys_is_readable((const void *)range->high)) {
            range->unreadable = range->high;
            return false;
        }
        range->high = (range->high | page_mask) + 1;
    }
    return true;
}

// Empty in between: a signal handler may copy it then.
void range_restart(struct walk_range *range, uintptr_t stack) {
    range->high = 0;
    range->unreadable = range->sure_high = 0;
    compiler_barrier();
    range->low = stack & ~(uintptr_t)(sys_page_bytes() - 1);
    compiler_barrier();
    range->high = range->low + sys_page_bytes();
}

// The stack pointer is outside the known range: a little below it, the stack has grown, if all
// pages between can be read; elsewhere, it is another stack.
COLD void range_enter_slow(struct walk_range *range, uintptr_t stack) {
    const uintptr_t near_bytes = 1u << 20;
    uintptr_t page = stack & ~(uintptr_t)(sys_page_bytes() - 1), at = page;
    bool is_near = stack < range->low && range->low - stack < near_bytes;
    while (is_near && at < range->low && sys_is_readable((const void *)at)) at += sys_page_bytes();
    if (is_near && at == range->low)
        range->low = page;
    else
        range_restart(range, stack);
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

// Whose frame it is, is not known where the event is another's, interrupted on another stack: the
// stack pointer is then that behind the record, which only walk_search is asked about.
NOINLINE struct walk_start walk_start_of(const uintptr_t *frame) {
    uintptr_t pc = code_of_hook(frame), behind = 2 * sizeof(uintptr_t);
    uint64_t rule = pc ? rule_look_up(pc) : RULE_NONE;
    if (pc && rule_kind(rule) == RULE_NONE) rule = rule_find_slow(pc);
    if (rule_saves_frame(rule)) behind = rule_record_offset(rule);
    return (struct walk_start){frame[1], (uintptr_t)frame + behind, (uintptr_t *)frame};
}
#endif
