// SPDX-License-Identifier: Apache-2.0
// The stack memory that a thread's walks may read (struct walk_range): how it grows, and where it
// begins anew.
#ifndef RUNTIME_UNWIND_WALK_RANGE_H
#define RUNTIME_UNWIND_WALK_RANGE_H

#include "runtime/unwind/walk.h"

// Makes [range.low, end) known readable, or says that it is not.
bool range_extend_slow(struct walk_range *range, uintptr_t end, bool is_guessed);

// Begins at the page of this stack pointer, whatever was known before.
void range_restart(struct walk_range *range, uintptr_t stack);

void range_enter_slow(struct walk_range *range, uintptr_t stack);

ALWAYS_INLINE void range_enter(struct walk_range *range, uintptr_t stack) {
    if (unlikely(stack < range->low || stack >= range->high)) range_enter_slow(range, stack);
}

#endif
