// SPDX-License-Identifier: Apache-2.0
// `thread_makers KIND COUNT`: makes short threads without a pause, each of which allocates and
// looks whether what is in its block stays there. COUNT threads do so at once.
//
//   joined    each makes a thread and waits for its end
//   detached  each makes threads that nobody waits for, up to 4,000 a second
//   pool      each makes a pool of threads, gives it work, and ends it
//   stacks    as joined, with a stack of the program's own that is full of old data
//
// SIGTERM ends it: "sound" and status 0 if all blocks were as they should be.
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAKERS_MAX = 128, POOL = 6, BLOCK_BYTES = 100, OLD_DATA = 0xa5, STACK_BYTES = 128 << 10 };
enum { MAKER_STACK_BYTES = 256 << 10, BURST = 8, PAUSE_US = 2000, ROUNDS = 4 };

static volatile sig_atomic_t is_ending;
static int is_damaged;   // (atomic)
static int going_count;  // (atomic) detached threads

static void end(int signal) {
    (void)signal;
    is_ending = 1;
}

static void allocate(void) {
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t *block = malloc(BLOCK_BYTES), mark = (uint8_t)(uintptr_t)block | 1;
        memset(block, mark, BLOCK_BYTES);
        __asm__ volatile("" : : "r"(block) : "memory");
        for (int i = 0; i < BLOCK_BYTES; i++)
            if (block[i] != mark) __atomic_store_n(&is_damaged, 1, __ATOMIC_RELAXED);
        free(block);
    }
}

static void *short_thread(void *unused) {
    allocate();
    return unused;
}

static void *detached_thread(void *unused) {
    allocate();
    usleep(PAUSE_US);
    allocate();
    __atomic_sub_fetch(&going_count, 1, __ATOMIC_RELAXED);
    return unused;
}

static void *joined(void *unused) {
    pthread_t thread;
    while (!is_ending) {
        if (!pthread_create(&thread, NULL, short_thread, NULL)) pthread_join(thread, NULL);
        usleep(PAUSE_US);
    }
    return unused;
}

static void *detached(void *unused) {
    pthread_t thread;
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    while (!is_ending) {
        for (int i = 0; i < BURST; i++) {
            __atomic_add_fetch(&going_count, 1, __ATOMIC_RELAXED);
            if (pthread_create(&thread, &how, detached_thread, NULL))
                __atomic_sub_fetch(&going_count, 1, __ATOMIC_RELAXED);
        }
        usleep(PAUSE_US);
    }
    return unused;
}

static void *pool(void *unused) {
    pthread_t threads[POOL];
    while (!is_ending) {
        int count = 0;
        while (count < POOL && !pthread_create(&threads[count], NULL, short_thread, NULL)) count++;
        allocate();
        while (count) pthread_join(threads[--count], NULL);
        usleep(PAUSE_US);
    }
    return unused;
}

static void *stacks(void *unused) {
    pthread_t thread;
    pthread_attr_t how;
    void *stack = NULL;
    if (posix_memalign(&stack, (size_t)sysconf(_SC_PAGESIZE), STACK_BYTES)) return unused;
    while (!is_ending) {
        memset(stack, OLD_DATA, STACK_BYTES);
        pthread_attr_init(&how);
        pthread_attr_setstack(&how, stack, STACK_BYTES);
        if (!pthread_create(&thread, &how, short_thread, NULL)) pthread_join(thread, NULL);
        pthread_attr_destroy(&how);
    }
    free(stack);
    return unused;
}

static const struct {
    const char *name;
    void *(*make)(void *);
} kinds[] = {{"joined", joined}, {"detached", detached}, {"pool", pool}, {"stacks", stacks}};

int main(int count, char **words) {
    pthread_t makers[MAKERS_MAX];
    pthread_attr_t how;
    void *(*make)(void *) = NULL;
    int maker_count = count == 3 ? atoi(words[2]) : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (count == 3 && !strcmp(words[1], kinds[i].name)) make = kinds[i].make;
    if (!make || maker_count < 1 || maker_count > MAKERS_MAX) return 2;
    signal(SIGTERM, end);
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, MAKER_STACK_BYTES);
    for (int i = 0; i < maker_count; i++)
        if (pthread_create(&makers[i], &how, make, NULL)) return 2;
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < maker_count; i++) pthread_join(makers[i], NULL);
    while (__atomic_load_n(&going_count, __ATOMIC_RELAXED)) usleep(PAUSE_US);
    puts(is_damaged ? "damaged" : "sound");
    return is_damaged;
}
