// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/countdown.h"

#include "runtime/sample/maths.h"

// Shows at most T of what is left.
static void countdown_show(struct countdown *countdown, int64_t *left, int64_t bytes) {
    int64_t rate = (int64_t)countdown->rate_bytes;
    int64_t shown = bytes < rate ? bytes : rate;
    countdown->rest_bytes = bytes - shown;
    *left = shown;
}

// Rounded up, so that a block of k whole bytes meets it as often as it would meet the exact number.
void countdown_draw(struct countdown *countdown, int64_t *left, uint64_t rate_bytes) {
    double exact = -maths_log(prng_share(&countdown->chance)) * (double)rate_bytes;
    int64_t bytes = (int64_t)exact;
    if ((double)bytes < exact) bytes++;
    if (bytes < 1) bytes = 1;
    countdown->rate_bytes = rate_bytes;
    countdown_show(countdown, left, bytes);
}

bool countdown_pay(struct countdown *countdown, int64_t *left, uint64_t size_bytes,
                   uint64_t rate_bytes) {
    uint64_t charge = countdown_charge(size_bytes);
    if (*left <= 0) countdown_draw(countdown, left, rate_bytes);
    if (charge >= countdown->rate_bytes) return true;
    int64_t all = *left + countdown->rest_bytes;
    if ((int64_t)charge >= all) return true;
    countdown_show(countdown, left, all - (int64_t)charge);
    return false;
}
