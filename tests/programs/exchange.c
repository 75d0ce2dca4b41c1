// SPDX-License-Identifier: Apache-2.0
// `exchange THREADS ROUNDS`: threads allocate blocks and put them into places that they share; what
// was there before, mostly another thread's, they free. Prints what was allocated.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 4096, THREADS_MOST = 512, SIZE_LEAST = 16, SIZES = 700 };

static _Atomic(void *) places[PLACES];
static long rounds;

static void *work(void *argument) {
    uint32_t random = (uint32_t)(uintptr_t)argument * 2654435761u + 1;
    uintptr_t bytes = 0;
    for (long i = 0; i < rounds; i++) {
        random = random * 1664525u + 1013904223u;
        size_t size = SIZE_LEAST + (random >> 8) % SIZES;
        void *fresh = malloc(size);
        if (!fresh) abort();
        bytes += size;
        free(atomic_exchange(&places[(random >> 20) % PLACES], fresh));
    }
    return (void *)bytes;
}

int main(int argc, char **argv) {
    static pthread_t threads[THREADS_MOST];
    long count = argc > 2 ? atol(argv[1]) : 0;
    unsigned long long bytes = 0;
    if (count < 1 || count > THREADS_MOST) return 2;
    rounds = atol(argv[2]);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)) != 0) return 1;
    for (long i = 0; i < count; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bytes += (uintptr_t)result;
    }
    for (int i = 0; i < PLACES; i++) free(places[i]);
    printf("%llu bytes\n", bytes);
    return 0;
}
