// SPDX-License-Identifier: Apache-2.0
// Which allocations are sampled: a countdown of bytes, drawn from the exponential distribution with
// mean T (the rate). An allocation of k bytes takes k from it (at least 1) and is sampled when it
// takes all; so each byte is as likely as any other to be the one that samples, however sizes and
// threads are mixed, and a block is sampled with probability p = 1 - exp(-k/T). Blocks of T bytes
// and more are sampled always and take nothing.
//
// The hot path sees one number: `left`. It is at most T, so that one comparison finds large blocks
// too; the part of the countdown beyond T waits in `rest`. A number that is not above 0 means that
// there is no countdown: the thread's first allocation, a forked child, a signal handler that left
// an event by a jump. Then a new one is drawn, which is right at any time, since an exponential
// countdown does not remember how long it has run; only the absence itself must not be a sample.
//
// A thread keeps the rate its countdown was drawn with: a change of the rate holds from the next
// one on.
#ifndef RUNTIME_SAMPLE_COUNTDOWN_H
#define RUNTIME_SAMPLE_COUNTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sample/prng.h"

// Of rates and sizes: beyond, products of doubles would not be exact enough.
#define COUNTDOWN_MOST_BYTES (1ull << 47)

struct countdown {
    int64_t rest_bytes;   // beyond `left`
    uint64_t rate_bytes;  // T, from 1 to COUNTDOWN_MOST_BYTES
    struct prng chance;
};

// Draws a countdown; `left` gets its first part.
void countdown_draw(struct countdown *countdown, int64_t *left, uint64_t rate_bytes);

// What an allocation takes.
static inline uint64_t countdown_charge(uint64_t size_bytes) {
    return size_bytes + !size_bytes;
}

// An allocation that does not fit into `left`: true if it is sampled, with the rate in `countdown`
// (the caller draws the next countdown, unless the block is at least as large as the rate). False:
// `left` and the rest have paid for it. Without a countdown one is drawn first, with `rate_bytes`.
bool countdown_pay(struct countdown *countdown, int64_t *left, uint64_t size_bytes,
                   uint64_t rate_bytes);

#endif
