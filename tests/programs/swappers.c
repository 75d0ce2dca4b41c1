// SPDX-License-Identifier: Apache-2.0
// Four threads allocate in every way, hand blocks to each other and free them, until there is a
// line of input; then they free all they have. Says "up" when they run.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, OWN = 256, SHARED = 64, MOST_BYTES = 3000, ALIGNMENT = 64 };

static int is_over;
static void *shared[SHARED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void swap(void **own, unsigned place) {
    pthread_mutex_lock(&lock);
    void *taken = shared[place];
    shared[place] = *own;
    *own = taken;
    pthread_mutex_unlock(&lock);
}

static void *allocate(unsigned way, size_t size) {
    switch (way) {
    case 0:
        return malloc(size);
    case 1:
        return calloc(1, size);
    default:
        return aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
}

static void *work(void *number) {
    unsigned random = (unsigned)(size_t)number * 7919;
    void *own[OWN] = {0};
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        random = random * 1103515245 + 12345;
        void **place = &own[(random >> 8) % OWN];
        size_t size = (random >> 16) % MOST_BYTES + 1;
        unsigned what = random >> 5 & 7;
        if (what == 7) {
            swap(place, (random >> 8) % SHARED);
        } else if (what == 6) {
            *place = realloc(*place, size);
        } else {
            free(*place);
            *place = what == 5 ? NULL : allocate(what, size);
        }
    }
    for (int i = 0; i < OWN; i++) free(own[i]);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    puts("up");
    fflush(stdout);
    getchar();
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED; i++) free(shared[i]);
    return 0;
}
