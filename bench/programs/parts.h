// SPDX-License-Identifier: Apache-2.0
// A measurement in PARTS parts, so that a disturbance spoils one part and not the figure. The
// programs that time themselves print one line in this form, which bench/runner.py reads:
//   least middle mean processor count
// the first three over the parts, then processor time of the whole, all in nanoseconds an
// operation; at last the number of operations.
#ifndef BENCH_PROGRAMS_PARTS_H
#define BENCH_PROGRAMS_PARTS_H
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PARTS = 9 };

static inline double clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int parts_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// `ns[i]` is the time of part i, made of `operations_a_part` operations. Sorts `ns`.
static inline void parts_print(double ns[PARTS], double operations_a_part, double processor_ns,
                               double operations) {
    double sum = 0;
    qsort(ns, PARTS, sizeof *ns, parts_compare);
    for (int i = 0; i < PARTS; i++) sum += ns[i];
    printf("%.2f %.2f %.2f %.2f %.0f\n", ns[0] / operations_a_part,
           ns[PARTS / 2] / operations_a_part, sum / PARTS / operations_a_part,
           processor_ns / operations, operations);
}
#endif
