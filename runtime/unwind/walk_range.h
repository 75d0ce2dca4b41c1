// SPDX-License-Identifier: Apache-2.0
// The stack memory that a thread's walks may read (struct walk_range): how it grows, and where it
// begins anew.
#ifndef RUNTIME_UNWIND_WALK_RANGE_H
#define RUNTIME_UNWIND_WALK_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

// The stack memory that a thread's walks may read: known to be mapped and ascending. Walks extend
// it page by page as they need, guesses only a little at once; it starts anew when the stack
// pointer is elsewhere (coroutines, signal stacks).
struct walk_range {
    uintptr_t low, high;
    bool has_new_code;     // rules were worked out and their code is not noted yet; kept by resets
    uintptr_t unreadable;  // a page above where guesses do not go; 0: none
    uintptr_t sure_high;   // up to here it is one stack: a whole walk without a guess went so far
};

// Makes [range.low, end) known readable, or says that it is not.
bool range_extend_slow(struct walk_range *range, uintptr_t end, bool is_guessed);

// Begins at the page of this stack pointer, whatever was known before.
void range_restart(struct walk_range *range, uintptr_t stack);

void range_enter_slow(struct walk_range *range, uintptr_t stack);

ALWAYS_INLINE void range_enter(struct walk_range *range, uintptr_t stack) {
    if (unlikely(stack < range->low || stack >= range->high)) range_enter_slow(range, stack);
}

#endif
