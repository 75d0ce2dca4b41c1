// SPDX-License-Identifier: Apache-2.0
// SIGALRM again and again, for programs whose handlers come in the middle of everything. The timer
// is set for one shot, by the handler as its last act: one with a period would leave the program no
// time where handlers take longer than the period. Their number is bounded as well, so that a
// program that waits for its own work comes to an end even where timers are so slow that it never
// gets to work in between.
#ifndef TESTS_PROGRAMS_INTERRUPTIONS_H
#define TESTS_PROGRAMS_INTERRUPTIONS_H

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t interruptions_left;
static volatile suseconds_t interruption_us;

// At the end of the handler, also of one that jumps out.
static inline void interrupt_again(void) {
    const struct itimerval once = {{0, 0}, {0, interruption_us}};
    if (interruptions_left <= 0) return;
    interruptions_left--;
    setitimer(ITIMER_REAL, &once, NULL);
}

// From now on SIGALRM comes `after_us` (below a second) after the last one was handled, `most`
// times at most.
static inline void interruptions_begin(suseconds_t after_us, int most) {
    interruption_us = after_us;
    interruptions_left = most;
    interrupt_again();
}

static inline void interruptions_end(void) {
    const struct itimerval never = {{0, 0}, {0, 0}};
    interruptions_left = 0;
    setitimer(ITIMER_REAL, &never, NULL);
}

#endif
