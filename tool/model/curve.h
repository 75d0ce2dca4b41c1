// SPDX-License-Identifier: Apache-2.0
// The numbers of a curve: bytes in equal parts of the time, its cells.
#ifndef TOOL_MODEL_CURVE_H
#define TOOL_MODEL_CURVE_H

#include <stdbool.h>
#include <stdint.h>

// The difference of two numbers of bytes; those of a damaged recording may be any, and it stays at
// the limit.
static inline int64_t growth_rise(int64_t from, int64_t to) {
    int64_t rise;
    return __builtin_sub_overflow(to, from, &rise) ? (to > from ? INT64_MAX : INT64_MIN) : rise;
}

// Fits a line to the curve, over time in cells or over what `at` has for each of them; returns the
// slope, and how much of the curve it explains (R squared, 0 to 1).
double curve_fit(const int64_t *curve, const double *at, uint32_t cells, double *fit);

// Returns the most that the curve falls from the cell on.
int64_t curve_fall(const int64_t *curve, uint32_t from, uint32_t cells);

// Returns whether a line that explains so much of values at `moments` is none by chance: t squared
// is R squared times the degrees of freedom, divided by what is not explained.
bool curve_is_sure(double fit, double moments);

#endif
