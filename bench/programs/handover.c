// SPDX-License-Identifier: Apache-2.0
// handover BLOCKS: one thread makes blocks, another frees every one of them. They pass through a
// ring that one side writes and the other reads; a side that cannot go on gives its processor away.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { RING = 4096, LINE_BYTES = 64, SIZES = 8, SIZE_STEP = 32 };

static void *ring[RING];
static _Alignas(LINE_BYTES) atomic_ullong made;
static _Alignas(LINE_BYTES) atomic_ullong freed;
static unsigned long long blocks;

static void *consume(void *arg) {
    for (unsigned long long i = 0; i < blocks;) {
        unsigned long long until = atomic_load_explicit(&made, memory_order_acquire);
        if (i == until) sched_yield();
        for (; i < until; i++) free(ring[i % RING]);
        atomic_store_explicit(&freed, i, memory_order_release);
    }
    return arg;
}

static void produce(void) {
    for (unsigned long long i = 0; i < blocks;) {
        unsigned long long until = atomic_load_explicit(&freed, memory_order_acquire) + RING;
        if (until > blocks) until = blocks;
        if (i == until) sched_yield();
        for (; i < until; i++) {
            ring[i % RING] = malloc((i % SIZES + 1) * SIZE_STEP);
            atomic_store_explicit(&made, i + 1, memory_order_release);
        }
    }
}

int main(int argc, char **argv) {
    pthread_t consumer;
    if (argc != 2) {
        fprintf(stderr, "usage: handover BLOCKS\n");
        return 2;
    }
    blocks = strtoull(argv[1], NULL, 10);
    if (pthread_create(&consumer, NULL, consume, NULL)) return 1;
    produce();
    pthread_join(consumer, NULL);
    return 0;
}
