// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/watch.h"

// Watches do not overlap.
enum { LEFT_LEAST = CAIRN_SHORT_CALLS, LEFT_SPREAD = 2 * (CAIRN_WATCHED_EVERY - LEFT_LEAST) };

// Xorshift; never 0.
static uint32_t next_random(struct watch *watch) {
    uint32_t x = watch->random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return watch->random = x;
}

bool watch_renew(struct watch *watch) {
    bool is_first = watch->random == 0;
    // any number that other threads do not begin with
    if (is_first) watch->random = (uint32_t)((uintptr_t)watch >> 6) * 2654435761u | 1;
    uint32_t random = next_random(watch) >> 8;
    watch->left = (int32_t)(is_first ? random % CAIRN_WATCHED_EVERY + 1
                                     : LEFT_LEAST + random % (LEFT_SPREAD + 1));
    return !is_first;
}

void watch_begin(struct watch *watch, const void *block, uint32_t cell, uint64_t calls) {
    watch->block = NULL;
    if (cell <= CAIRN_CELL_OTHER) return;
    struct cairn_cell_rare *rare = cell_rare_make(cell);
    if (!rare) return;
    rare->watched++;
    watch->cell = cell;
    watch->until = calls + CAIRN_SHORT_CALLS;
    watch->block = block;
}

void watch_end(struct watch *watch, uint32_t cell, uint64_t calls) {
    // another cell's: the watched block was freed by another thread, and its address came again
    if (cell == watch->cell && calls < watch->until) cell_rare(cell)->short_lived++;
    watch->block = NULL;
}

void watch_drop(struct watch *watch) {
    cell_rare(watch->cell)->watched--;
    watch->block = NULL;
}
