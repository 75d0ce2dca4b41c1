// SPDX-License-Identifier: Apache-2.0
// How much debug information may be open at once, over all threads.
#ifndef TOOL_SYMBOL_BUDGET_H
#define TOOL_SYMBOL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

// Waits until there is room. What is larger than everything is let in when it is alone.
void budget_take(uint64_t bytes);
void budget_give(uint64_t bytes);

// How much work one module's debug information may make. What a compiler writes takes steps in
// proportion to its size; a made-up file can have all ranges overlap, share one line table among
// all units, or nest scopes without end, so that a small file takes hours. When the steps are
// spent, reading ends where it is: names are missing then, and the report says why.
// Test: tests/unit/tool/symbol/effort_test.c.

// Programs of gcc and clang took less than one step for each byte of their files.
#define EFFORT_STEPS_MIN ((uint64_t)32 << 20)
#define EFFORT_STEPS_PER_BYTE 16

struct effort {
    uint64_t left;  // 0: spent
};

static inline bool effort_spend(struct effort *effort, uint64_t steps) {
    effort->left = steps < effort->left ? effort->left - steps : 0;
    return effort->left;
}

#endif
