// SPDX-License-Identifier: Apache-2.0
// Known sites of very different sizes, so that estimates can be held against the truth:
//   sampled sizes            blocks of 64 B to 4 MiB, half of them freed
//   sampled threads          threads of 40 KiB each, one after the other
//   sampled together [COUNT] threads at once, each with 64 stacks of blocks of several sizes
//   sampled growth           blocks that grow by realloc, and some calls of it that fail
//   sampled mixed            many small and few large blocks by the same stack
//   sampled fork [COUNT]     children that go on with what they inherited
//   sampled phases           what is held rises and falls between snapshots that it asks for
//   sampled churn ROUNDS     malloc and free
//   sampled forever          the same without an end
// Every site keeps what it does not free until the end. Prints lines `site bytes blocks` of what is
// left.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/cairn/cairn.h"

#define SITE __attribute__((noinline))
enum { KIB = 1024, SIZES = 6, THREADS = 400, GROWN = 60 };

static void *volatile sink;

static void say(const char *site, size_t bytes, size_t blocks) {
    char line[100];
    int length = snprintf(line, sizeof line, "%s %zu %zu\n", site, bytes, blocks);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) _exit(1);
}

// Blocks of one size: every second one is freed at once.
static void fill(void *(*make)(size_t), const char *name, size_t size, size_t bytes) {
    size_t count = bytes / size;
    for (size_t i = 0; i < count; i++) {
        void *block = make(size);
        void *other = make(size);
        sink = block;
        free(other);
    }
    say(name, count * size, count);
}

#define SITE_OF(name)                                                                              \
    SITE static void *name(size_t size) {                                                          \
        void *block = malloc(size);                                                                \
        __asm__ volatile("" ::: "memory");                                                         \
        return block;                                                                              \
    }
SITE_OF(make_tiny)
SITE_OF(make_small)
SITE_OF(make_page)
SITE_OF(make_middle)
SITE_OF(make_large)
SITE_OF(make_huge)

static void sizes(void) {
    static const struct {
        void *(*make)(size_t);
        const char *name;
        size_t size;
    } sites[SIZES] = {{make_tiny, "make_tiny", 64},          {make_small, "make_small", 1000},
                      {make_page, "make_page", 4096},        {make_middle, "make_middle", 60 * KIB},
                      {make_large, "make_large", 300 * KIB}, {make_huge, "make_huge", 4096 * KIB}};
    for (int i = 0; i < SIZES; i++)
        fill(sites[i].make, sites[i].name, sites[i].size, (i == SIZES - 1 ? 40 : 20) * KIB * KIB);
}

SITE static void *in_thread(void *unused) {
    for (int i = 0; i < 40; i++) sink = malloc(KIB);
    return unused;
}

static void threads(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_thread, NULL)) exit(1);
        pthread_join(thread, NULL);
    }
    say("in_thread", (size_t)THREADS * 40 * KIB, (size_t)THREADS * 40);
}

// Threads that work at once. Stack number n goes n times through `deeper` and ends in one that says
// nothing of n: so there are many alike, and what each holds is one trial.
enum { STACKS = 64, ROUNDS = 20, TOGETHER_SIZES = 5 };
static const size_t together_sizes[TOGETHER_SIZES] = {64, 300, 700, 2000, 9000};

SITE static void *deeper(int depth, size_t size) {
    void *block = depth ? deeper(depth - 1, size) : malloc(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static pthread_barrier_t all_begun;

static void *one_of_several(void *begun) {
    sink = malloc(1);  // the thread's random numbers begin with its first event
    pthread_barrier_wait(begun);
    pthread_barrier_wait(&all_begun);
    for (int i = 0; i < ROUNDS * STACKS * TOGETHER_SIZES; i++) {
        size_t size = together_sizes[i / STACKS % TOGETHER_SIZES];
        sink = deeper(i % STACKS, size);
        free(deeper(i % STACKS, size));
    }
    return NULL;
}

static void together(int count) {
    pthread_t threads[16];
    pthread_barrier_t begun;
    size_t bytes = 0;
    if (count < 1 || count > 16) exit(2);
    // one after the other up to here, so that each has the same random numbers in every run; and
    // none ends before the last is made, which would get its stack, and libc one block less
    if (pthread_barrier_init(&all_begun, NULL, (unsigned)count)) exit(1);
    for (int i = 0; i < count; i++) {
        if (pthread_barrier_init(&begun, NULL, 2)) exit(1);
        if (pthread_create(&threads[i], NULL, one_of_several, &begun)) exit(1);
        pthread_barrier_wait(&begun);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < TOGETHER_SIZES; i++) bytes += together_sizes[i];
    say("deeper", (size_t)count * ROUNDS * bytes, (size_t)count * ROUNDS * TOGETHER_SIZES);
}

enum { MIXED_SMALL = 1585, MIXED_LARGE = 21 };
static const size_t mixed_small = 32, mixed_large = 60000;

SITE_OF(make_mixed)
SITE_OF(make_other)

static void mixed(void) {
    const volatile size_t sizes[] = {mixed_small, mixed_large};  // one call, not two of them
    for (int i = 0; i < MIXED_SMALL + MIXED_LARGE; i++) sink = make_mixed(sizes[i >= MIXED_SMALL]);
    for (int i = 0; i < 4 * MIXED_SMALL; i++) free(make_other(mixed_small));
    say("make_mixed", MIXED_SMALL * mixed_small + MIXED_LARGE * mixed_large,
        MIXED_SMALL + MIXED_LARGE);
}

SITE static void *grow(void *block, size_t size) {
    void *grown = realloc(block, size);
    __asm__ volatile("" ::: "memory");
    return grown;
}

static void growth(void) {
    const size_t last = 400 * KIB, impossible = (size_t)1 << 62;
    for (int i = 0; i < GROWN; i++) {
        void *block = NULL;
        for (size_t size = 100; size < last; size *= 2) {
            block = grow(block, size);
            if (realloc(block, impossible)) exit(1);
        }
        sink = grow(block, last);
    }
    say("grow", GROWN * last, GROWN);
}

SITE static void *in_child(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static void children(int count) {
    size_t kept = 16 * KIB;
    void **blocks = calloc(kept, sizeof *blocks);
    for (size_t i = 0; i < kept; i++) blocks[i] = make_small(1000);
    for (int child = 0; child < count; child++) {
        pid_t pid = fork();
        if (pid) {
            waitpid(pid, NULL, 0);
            continue;
        }
        for (size_t i = 0; i < kept; i += 2) free(blocks[i]);
        for (size_t i = 0; i < 8 * KIB; i++) sink = in_child(2000);
        say("in_child", 2000 * 8 * KIB, 8 * KIB);
        say("make_small", kept / 2 * 1000, kept / 2);
        exit(0);
    }
}

static void churn(long rounds) {
    for (long i = 0; i < rounds; i++) {
        void *block = make_small((size_t)(i % 1000));
        sink = block;
        free(block);
    }
}

static void free_from(void **blocks, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) free(blocks[first + i]);
}

// Blocks of two stacks come and go: some stay over a snapshot, some are gone before the next. Each
// of ten slices takes so many ms.
static void phases(long slice_ms) {
    enum { SMALL = 20000, PAGES = 3000, ROUNDS = 30000, SLICES = 10 };
    void **small = calloc(SMALL, sizeof *small), **pages = calloc(PAGES, sizeof *pages);
    for (size_t i = 0; i < SMALL; i++) small[i] = make_small(1000);
    cairn_mark("first");
    for (size_t i = 0; i < PAGES; i++) pages[i] = make_page(4096);
    free_from(small, 0, SMALL / 2);
    churn(ROUNDS);
    cairn_snapshot("second");
    free_from(pages, 0, PAGES / 3);
    for (size_t i = 0; i < SMALL / 4; i++) small[i] = make_small(1000);
    cairn_snapshot("third");
    free_from(pages, PAGES / 3, PAGES - PAGES / 3);
    for (int slice = 0; slice < SLICES; slice++) {
        for (size_t i = 0; i < SMALL / SLICES; i++) sink = make_tiny(64);
        nanosleep(&(struct timespec){0, slice_ms * 1000000}, NULL);
        cairn_snapshot(NULL);
    }
    free(small);
    free(pages);
}

// Says `pid allocations` after the first hundred thousand, and goes on until it is killed.
static void forever(void) {
    const long some = 100000;
    char line[100];
    churn(some);
    int length = snprintf(line, sizeof line, "%d %ld\n", (int)getpid(), some);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) _exit(1);
    for (;;) churn(some);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long number = argc > 2 ? atol(argv[2]) : 3;
    if (!strcmp(what, "sizes"))
        sizes();
    else if (!strcmp(what, "threads"))
        threads();
    else if (!strcmp(what, "together"))
        together((int)number);
    else if (!strcmp(what, "growth"))
        growth();
    else if (!strcmp(what, "mixed"))
        mixed();
    else if (!strcmp(what, "fork"))
        children((int)number);
    else if (!strcmp(what, "phases"))
        phases(argc > 2 ? number : 0);
    else if (!strcmp(what, "churn"))
        churn(number);
    else if (!strcmp(what, "forever"))
        forever();
    else
        return 2;
    return 0;
}
