// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of a clock.
#ifndef TOOL_BASE_CLOCK_H
#define TOOL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND_NS 1000000000ull

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * CLOCK_SECOND_NS + (uint64_t)now.tv_nsec;
}

// For durations and deadlines; the one that recordings have too.
static inline uint64_t clock_now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
