// SPDX-License-Identifier: Apache-2.0
// `tight THREADS`: every thread, the first one too, does nothing but allocate and free, and looks
// whether what is in its block stays there. SIGTERM ends it: "sound" and status 0 if it did.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 64, SIZES = 512 };

static volatile sig_atomic_t is_ending;
static int is_damaged;  // (atomic)

static void end(int signal) {
    (void)signal;
    is_ending = 1;
}

static void *churn(void *argument) {
    uint64_t check = (uint64_t)(uintptr_t)argument;
    for (uint64_t turn = 1; !is_ending; turn++) {
        uint64_t *block = malloc(sizeof *block + turn * sizeof *block % SIZES);
        *block = check ^ turn;
        // the same words again, through memory
        __asm__ volatile("" : : "r"(block) : "memory");
        if (*block != (check ^ turn)) __atomic_store_n(&is_damaged, 1, __ATOMIC_RELAXED);
        free(block);
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS_MAX];
    int thread_count = count > 1 ? atoi(words[1]) : 1;
    if (thread_count > THREADS_MAX) return 2;
    signal(SIGTERM, end);
    for (int i = 1; i < thread_count; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(intptr_t)i)) return 2;
    puts("ready");
    fflush(stdout);
    churn(NULL);
    for (int i = 1; i < thread_count; i++) pthread_join(threads[i], NULL);
    puts(is_damaged ? "damaged" : "sound");
    return is_damaged;
}
