// SPDX-License-Identifier: Apache-2.0
// Which stacks allocate blocks that live shortly: a sample, since to know when each block was
// allocated takes as much memory as the live map (ages.h).
//
// A thread watches one block at a time. Every CAIRN_WATCHED_EVERY allocations, more or less, so
// that loops do not meet always the same one of their blocks, it takes the next one, which then
// has CAIRN_SHORT_CALLS further allocations to be freed by that thread. Each watch is over before
// the next begins, and when that is does not depend on how this one ends: every allocation of the
// thread is as likely to be watched as any other.
//
// The count down to the next one is also when the thread does what is rare: see event.c. What
// another thread frees counts as long-lived, and what realloc takes counts as not watched.
#ifndef RUNTIME_STACK_WATCH_H
#define RUNTIME_STACK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/stack/cells.h"

struct watch {
    const void *block;  // NULL: none
    int32_t left;       // allocations until the next one
    uint32_t cell;      // the block's
    uint64_t until;     // short-lived if it is freed before the thread's allocation of that number
    uint32_t random;    // 0: not begun
};

// Counts down by one allocation. True: it is time for watch_renew.
ALWAYS_INLINE bool watch_is_due(struct watch *watch) {
#if defined(__x86_64__)
    bool is_due;  // of plain C the compiler makes five instructions
    __asm__("subl $1, %0" : "+m"(watch->left), "=@ccle"(is_due));
    return is_due;
#else
    return --watch->left <= 0;
#endif
}

// Begins to count down again, from CAIRN_WATCHED_EVERY on average; the first time from anything up
// to that, so that the blocks of a thread's start are met as often as others. True: the present
// allocation is to be watched, which that of the first time is not.
bool watch_renew(struct watch *watch);

// Watches a block of this thread's own cell that is number `calls` of its allocations.
void watch_begin(struct watch *watch, const void *block, uint32_t cell, uint64_t calls);

// The thread, which has made `calls` allocations, frees a block of `cell` at the watched address.
void watch_end(struct watch *watch, uint32_t cell, uint64_t calls);
// The watched block was given to realloc.
void watch_drop(struct watch *watch);

#endif
