// SPDX-License-Identifier: Apache-2.0
// short_threads THREADS: so many threads one after the other, each makes and frees one block. An
// operation, as in parts.h, is the start, work and end of a thread.
#include "bench/programs/parts.h"

#include <pthread.h>

enum { BLOCK_BYTES = 100 };

static void *work(void *arg) {
    void *block = malloc(BLOCK_BYTES);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
    return arg;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: short_threads THREADS\n");
        return 2;
    }
    int threads_a_part = atoi(argv[1]) / PARTS + 1;
    double ns[PARTS], start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int part = 0; part < PARTS; part++) {
        double part_start = clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < threads_a_part; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, work, NULL)) return 1;
            pthread_join(thread, NULL);
        }
        ns[part] = clock_ns(CLOCK_MONOTONIC) - part_start;
    }
    double processor_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
    parts_print(ns, threads_a_part, processor_ns, (double)threads_a_part * PARTS);
    return 0;
}
