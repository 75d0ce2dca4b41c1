// SPDX-License-Identifier: Apache-2.0
#include "tool/core/pending.h"

#include <stdlib.h>

enum { STAGE_SHIFT = 6, STAGE_BITS = 1 << STAGE_SHIFT };

bool pending_open(struct pending *pending, uint32_t count) {
    uint64_t bits = (uint64_t)count + 1;
    for (int i = 0; i < PENDING_STAGES; i++) {
        bits = (bits + STAGE_BITS - 1) / STAGE_BITS;
        pending->words[i] = calloc(bits, sizeof *pending->words[i]);
        if (!pending->words[i]) return false;
    }
    return true;
}

void pending_close(struct pending *pending) {
    for (int i = 0; i < PENDING_STAGES; i++) free(pending->words[i]);
}

void pending_add(struct pending *pending, uint64_t number) {
    for (int i = 0; i < PENDING_STAGES; i++, number >>= STAGE_SHIFT) {
        uint64_t *word = &pending->words[i][number >> STAGE_SHIFT], before = *word;
        *word |= (uint64_t)1 << number % STAGE_BITS;
        if (before) return;
    }
}

bool pending_take(struct pending *pending, uint32_t *number) {
    uint64_t at = 0;
    if (!*pending->words[PENDING_STAGES - 1]) return false;
    for (int i = PENDING_STAGES - 1; i >= 0; i--)
        at = at << STAGE_SHIFT | (unsigned)__builtin_ctzll(pending->words[i][at]);
    *number = (uint32_t)at;
    for (int i = 0; i < PENDING_STAGES; i++, at >>= STAGE_SHIFT) {
        uint64_t *word = &pending->words[i][at >> STAGE_SHIFT];
        *word &= *word - 1;
        if (*word) break;
    }
    return true;
}
