// SPDX-License-Identifier: Apache-2.0
// Ways to die in the middle of work, with an account that outlives it (ledger.h): `doomed HOW [N]`.
//   loop N      N threads (0: only main) allocate and free until something ends the process
//   paced S     works for S seconds, with pauses, and says "done"
//   many-stacks N  allocates on N different stacks, then the same
//   space       lowers RLIMIT_AS by itself and allocates until malloc fails, twice; then goes on
//   exhaust     allocates and touches memory until the kernel or the limit ends it
//   segv abrt term kill _exit quick_exit destructor   ends that way after 1,000 blocks
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/programs/ledger.h"

#define BLOCKS 1000
#define KEPT 4096
#define LARGE_BYTES (1u << 20)

__attribute__((noinline)) static void *work_forever(void *unused) {
    void *kept[KEPT] = {0};
    size_t sizes[KEPT] = {0};
    uint32_t random = (uint32_t)(uintptr_t)&unused;
    if (!ledger) ledger_begin();
    for (;;) {
        random = random * 1664525u + 1013904223u;
        size_t at = random >> 20, bytes = random % 5000 + 1;
        if (kept[at]) ledger_give(kept[at], sizes[at]);
        kept[at] = ledger_take(sizes[at] = bytes);
    }
    return unused;
}

static void run_loop(int count) {
    pthread_t thread;
    for (int i = 0; i < count; i++) pthread_create(&thread, NULL, work_forever, NULL);
    work_forever(NULL);
}

static int run_paced(int seconds) {
    for (int i = 0; i < seconds * 200; i++) {
        for (size_t bytes = 1; bytes < 100; bytes++) ledger_give(ledger_take(bytes), bytes);
        ledger_take(10);
        usleep(5000);
    }
    return puts("done") < 0;
}

// The bits of `path` choose the way: as many stacks as numbers.
__attribute__((noinline)) static void descend(unsigned path, int depth) {
    if (depth == 0)
        ledger_take(path % 300);
    else if (path >> depth & 1)
        descend(path, depth - 1);
    else
        descend(path, depth - 1);
    __asm__ volatile("" ::"r"(path));
}

static int run_many_stacks(unsigned count) {
    for (unsigned i = 0; i < count; i++) descend(i, 20);
    return puts("done") < 0;
}

static uint64_t address_space(void) {
    char text[256] = {0};
    int file = open("/proc/self/statm", O_RDONLY);
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    return got > 0 ? strtoull(text, NULL, 10) * 4096 : 0;
}

// Blocks below `spare` bytes in all are promised by the limit; every failure is one failed call.
static int fill(void) {
    void **last = NULL, *next;
    int failures = 0;
    while (failures < 3) {
        next = malloc(LARGE_BYTES / 8);
        if (!next) {
            failures++;
            continue;
        }
        *(void ***)next = last;
        last = next;
    }
    for (; last; last = next) {
        next = *last;
        free(last);
    }
    return failures;
}

static int run_space(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = address_space() + 64 * LARGE_BYTES;
    if (setrlimit(RLIMIT_AS, &limit)) return 1;
    int failures = fill() + fill();
    for (int i = 0; i < BLOCKS; i++) ledger_take(100);
    printf("%d failures\n", failures);
    return 0;
}

static void run_exhaust(void) {
    for (;;) {
        char *block = ledger_take(LARGE_BYTES / 64);
        if (!block) abort();
        memset(block, 1, LARGE_BYTES / 64);
    }
}

__attribute__((destructor)) static void die_late(void) {
    if (!ledger_lines || !getenv("DIE_LATE")) return;
    for (int i = 0; i < BLOCKS; i++) ledger_take(20);
    abort();
}

static int end(const char *how) {
    for (size_t i = 0; i < BLOCKS; i++) {
        void *block = ledger_take(i);
        if (i % 3) ledger_give(block, i);
    }
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "abrt")) abort();
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "_exit")) _exit(7);
    if (!strcmp(how, "quick_exit")) quick_exit(7);
    return !strcmp(how, "destructor") ? setenv("DIE_LATE", "1", 1) : 2;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "loop";
    ledger_open();
    if (!strcmp(how, "loop")) run_loop(argc > 2 ? atoi(argv[2]) : 0);
    if (!strcmp(how, "paced")) return run_paced(argc > 2 ? atoi(argv[2]) : 1);
    if (!strcmp(how, "many-stacks")) return run_many_stacks((unsigned)atoi(argv[2]));
    if (!strcmp(how, "exhaust")) run_exhaust();
    if (!strcmp(how, "space")) return run_space();
    return end(how);
}
