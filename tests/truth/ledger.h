// SPDX-License-Identifier: Apache-2.0
// Shared by the programs of tests/truth. Each is built as twins: HOLDS is 1 where the claim that
// it is about is true, and 0 where one property is another and the claim is false. What is true
// they count themselves and print as a ledger, which tests/e2e/truth.py compares with the claim's
// evidence.
#ifndef TESTS_TRUTH_LEDGER_H
#define TESTS_TRUTH_LEDGER_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef THREADS
#define THREADS 1
#endif

#define APART __attribute__((noinline, noclone))

// Keeps a value that the compiler must not think away.
static void *volatile seen __attribute__((unused));

// Set where the program is built a third time, mended as the finding says: what it saves is
// measured.
#ifndef MENDED
#define MENDED 0
#endif

// A value that a saving is measured by, where no figure of the recording is it.
static inline void measured(const char *name, double value) {
    printf("measured %s %.0f\n", name, value);
}

// A value of the claim is between these.
static inline void ledger(const char *name, double least, double most) {
    printf("ledger %s %.0f %.0f\n", name, least, most);
}

// A value of the claim begins with this text.
static inline void ledger_name(const char *name, const char *text) {
    printf("ledger %s \"%s\"\n", name, text);
}

static inline double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline void wait_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

// Runs the function in THREADS threads, with their numbers; of one in the main thread.
static inline void in_threads(void *(*run)(void *)) {
    pthread_t threads[THREADS];
    if (THREADS == 1) {
        run(NULL);
        return;
    }
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i)) abort();
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

// Waits until whoever looks at the program lets it go on.
static inline void wait_for_input(void) {
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
}

#endif
