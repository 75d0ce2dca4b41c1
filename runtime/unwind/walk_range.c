// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/walk_range.h"

#include "runtime/sys/sys.h"

// Rejects places that a guess may not lead to: at or beyond the thread's control block, which lies
// above the frames of every thread but the first, or far from what is known of the stack.
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
