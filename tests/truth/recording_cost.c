// SPDX-License-Identifier: Apache-2.0
// Each block has a stack of its own, so that recording takes much memory beside the program; its
// twin makes the same blocks from two stacks.
//
// claim: recording_cost
// flags: -O1 -fno-optimize-sibling-calls
// flags: -O1 -fno-optimize-sibling-calls -DBYTES=400
#include "ledger.h"

#ifndef BYTES
#define BYTES 48
#endif
enum { LEVELS = 17 };

static void take(void) {
    seen = malloc(BYTES);
}

static void walk(unsigned path, int level);

__attribute__((noinline)) static void left(unsigned path, int level) {
    walk(path, level);
    __asm__ volatile("");
}

__attribute__((noinline)) static void right(unsigned path, int level) {
    walk(path, level);
    __asm__ volatile("");
}

__attribute__((noinline)) static void walk(unsigned path, int level) {
    if (!level)
        take();
    else if (HOLDS && path >> (level - 1) & 1)
        left(path, level - 1);
    else
        right(path, level - 1);
    __asm__ volatile("");
}

int main(void) {
    for (unsigned path = 0; path < 1u << LEVELS; path++) walk(path, LEVELS);
    // one in so many bytes gives thousands of samples
    const double rate = BYTES == 48 ? 4096 : 16384;
    ledger("rate_bytes", rate, rate);
    ledger("stacks", 1 << LEVELS, (1 << LEVELS) + 9);
    return 0;
}
