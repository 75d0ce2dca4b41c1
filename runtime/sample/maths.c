// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/maths.h"

#include <stdint.h>
#include <string.h>

static const double ln_2 = 0.693147180559945309417232121458;
static const double sqrt_2 = 1.41421356237309504880168872421;

enum { MANTISSA_BITS = 52, EXPONENT_MASK = 0x7ff, EXPONENT_OF_ONE = 1023 };

// x = 2^e m with m from 1/sqrt 2 to sqrt 2. With s = (m - 1) / (m + 1), which is at most 0.172,
// ln m = 2 (s + s^3/3 + s^5/5 + ...): eleven terms leave less than 2^-57.
double maths_log(double x) {
    enum { LAST_TERM = 21 };
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> MANTISSA_BITS & EXPONENT_MASK) - EXPONENT_OF_ONE;
    bits -= (uint64_t)exponent << MANTISSA_BITS;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > sqrt_2) {
        m /= 2;
        exponent++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int term = LAST_TERM; term > 0; term -= 2) sum = sum * square + 1.0 / term;
    return exponent * ln_2 + 2 * s * sum;
}

// x (1 - x/2 (1 - x/3 (1 - ...))): with x up to 1, twenty terms leave less than 2^-60.
double maths_share(double x) {
    enum { TERMS = 20 };
    double rest = 1;
    for (int n = TERMS; n > 1; n--) rest = 1 - x / n * rest;
    return x * rest;
}
