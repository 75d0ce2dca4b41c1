// SPDX-License-Identifier: Apache-2.0
// The two functions that sampling needs, without libm: the runtime depends on libc alone. Both are
// right to a few units of the last place; tests compare them with libm's.
#ifndef RUNTIME_SAMPLE_MATHS_H
#define RUNTIME_SAMPLE_MATHS_H

// The natural logarithm of a normal number above 0.
double maths_log(double x);

// 1 - exp(-x) for 0 <= x <= 1, also where exp(-x) is 1 to the last place.
double maths_share(double x);

#endif
