// SPDX-License-Identifier: Apache-2.0
// A lock for what happens seldom, whose holder may be anything: preempted on a loaded machine,
// interrupted by a handler that needs the lock itself, or stopped for good. So waiting has an end,
// and who cannot have the lock does without.
//
// While a holder runs again sooner or later, all get their turn: the wait is some 1,000 yields and
// then a second of short sleeps. After one such wait in vain the holder counts as stuck, and until
// it gives the lock back nobody waits longer than the yields, so that a program whose threads wait
// for each other by way of this lock goes on. Under seccomp nothing is called: the wait is short.
#ifndef RUNTIME_SYS_LOCK_H
#define RUNTIME_SYS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct lock {
    uintptr_t holder;  // (atomic) 0: nobody; else a number of the thread that does not change
    bool is_stuck;     // (atomic) somebody has waited for this holder in vain
};

// Safe in signal handlers. False: the caller's thread has it already, or waited in vain.
bool lock_take(struct lock *lock, uintptr_t me);
void lock_give_back(struct lock *lock);

#endif
