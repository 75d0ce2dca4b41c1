// SPDX-License-Identifier: Apache-2.0
// Threads that allocate, resize and free at random and hand blocks to one another; at each line of
// input they stand still, and the blocks that they hold are written to the file of that name:
// address and usable size, as the allocator tells it.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, HELD = 400, STEPS = 4000, LINE = 256 };

static void *held[THREADS][HELD];
static pthread_barrier_t begin, end;
static int is_over;

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

// Most are small; some are large, some aligned.
static void *take(uint32_t *state) {
    uint32_t kind = next(state) % 64;
    if (kind == 0) return malloc(next(state) % 300000);
    if (kind == 1) return aligned_alloc(4096, 4096 * (1 + next(state) % 8));
    if (kind < 16) return calloc(1, next(state) % 20000);
    return malloc(next(state) % 600);
}

static void *work(void *context) {
    const uintptr_t number = (uintptr_t)context;
    uint32_t state = (uint32_t)number + 1;
    for (;;) {
        for (int i = 0; i < STEPS; i++) {
            // another thread's block at times: it is taken out and put back as one
            void **place = &held[(number + (i % 16 == 0)) % THREADS][next(&state) % HELD];
            void *old = __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL);
            if (old && i % 8 == 0)
                old = realloc(old, 1 + next(&state) % 5000);
            else {
                free(old);
                old = take(&state);
            }
            free(__atomic_exchange_n(place, old, __ATOMIC_ACQ_REL));
        }
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        if (is_over) return NULL;
    }
}

static void tell(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) exit(3);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < HELD; k++)
            if (held[i][k])
                fprintf(file, "%lx %zx\n", (unsigned long)held[i][k],
                        malloc_usable_size(held[i][k]));
    fclose(file);
    puts("ready");
    fflush(stdout);
}

int main(void) {
    pthread_t threads[THREADS];
    char line[LINE];
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 3;
    for (;;) {
        char *path = fgets(line, sizeof line, stdin);
        pthread_barrier_wait(&begin);
        is_over = !path;
        if (path) {
            path[strcspn(path, "\n")] = 0;
            tell(path);
            path = fgets(line, sizeof line, stdin);
            is_over = !path;
        }
        pthread_barrier_wait(&end);
        if (is_over) break;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
