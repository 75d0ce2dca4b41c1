// SPDX-License-Identifier: Apache-2.0
// A program that is larger than it must be for one reason, named by its argument, and does what
// would help when a letter is read: t calls malloc_trim(0), f frees the block that pins the heap's
// end, a asks its allocator, in each thread, to give back what is free. Prints a line when it is
// ready and after each letter; ends with its input.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum {
    COUNT = 20000,
    BYTES = 1000,
    KEPT = 16,
    FAST_COUNT = 300000,
    FAST_BYTES = 100,
    FAST_KEPT = 1000,
    PIN_BYTES = 2000,
    THREADS = 6,
    LARGE = 20 << 20,
    MIDDLE = 1 << 20,
    MIDDLES = 16,
    HUGE_BYTES = 2 << 20,
    HUGE_COUNT = 12,
    HUGE_FULL = 3,  // of them, written from end to end
};

static void *kept[FAST_COUNT], *pin;
static pthread_barrier_t barrier;
static int thread_count;

static void *touched(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) exit(1);
    return memset(block, 1, bytes);
}

// Allocates blocks and frees all but each `every`th; 0: none stays.
static void leave(void **blocks, size_t count, size_t bytes, size_t every) {
    for (size_t i = 0; i < count; i++) blocks[i] = touched(bytes);
    for (size_t i = 0; i < count; i++)
        if (!every || i % every) free(blocks[i]);
}

static int (*control)(const char *, void *, size_t *, void *, size_t);
static void (*collect)(_Bool);
static void (*release)(void);

// Finds what another allocator than glibc's is asked by: at first, since that allocates.
static void find_calls(void) {
    *(void **)&control = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&collect = dlsym(RTLD_DEFAULT, "mi_collect");
    *(void **)&release = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
}

// Asks that allocator, if there is one.
static void ask_allocator(void) {
    if (control) control("arena.4096.purge", NULL, NULL, NULL, 0);
    if (collect) collect(1);
    if (release) release();
}

// Waits until it is to ask, and then until all have.
static void *run_thread(void *unused) {
    leave(calloc(COUNT, sizeof(void *)), COUNT, BYTES, KEPT);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    ask_allocator();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void ask_all(void) {
    if (thread_count) pthread_barrier_wait(&barrier);
    ask_allocator();
    if (thread_count) pthread_barrier_wait(&barrier);
}

// Keeps all bins changing.
static void *churn(void *unused) {
    for (unsigned number = 1;; number = number * 1664525u + 1013904223u) {
        size_t place = number / 7 % COUNT;
        free(kept[place]);
        kept[place] = malloc(number >> 20);
    }
    return unused;
}

static void use_arenas(void) {
    pthread_t thread;
    thread_count = THREADS;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, run_thread, NULL)) exit(1);
    pthread_barrier_wait(&barrier);
}

// Allocates the block that pins the end, by itself.
__attribute__((noinline)) static void put_pin(void) {
    pin = memset(malloc(PIN_BYTES), 1, PIN_BYTES);
}

// Frees a large block, so that blocks below its size stay in the heap from now on.
static void raise_threshold(void) {
    free(touched(LARGE));
    for (int i = 0; i < MIDDLES; i++) {
        kept[i] = touched(MIDDLE);
        kept[MIDDLES + i] = touched(BYTES);
    }
    for (int i = 0; i < MIDDLES; i++) free(kept[i]);
}

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    return memory;
}

// Allocates a block on huge pages, most of which have a byte each.
__attribute__((noinline)) static void spread(void) {
    const size_t bytes = (size_t)HUGE_COUNT * HUGE_BYTES;
    char *block = aligned_alloc(HUGE_BYTES, bytes);
    if (!block) exit(1);
    madvise(block, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < HUGE_COUNT; i++) block[i * HUGE_BYTES] = 1;
    kept[0] = memset(block, 1, (size_t)HUGE_FULL * HUGE_BYTES);
}

int main(int argc, char **argv) {
    static char read[BUFSIZ], written[BUFSIZ];  // that the allocator does not have
    const char *way = argc > 1 ? argv[1] : "live";
    find_calls();
    setvbuf(stdin, read, _IOFBF, sizeof read);
    setvbuf(stdout, written, _IOFBF, sizeof written);
    if (!strcmp(way, "freed")) leave(kept, COUNT, BYTES, 0);
    if (!strcmp(way, "live")) leave(kept, COUNT, BYTES, 1);
    if (!strcmp(way, "holes") || !strcmp(way, "locked")) leave(kept, COUNT, BYTES, KEPT);
    if (!strcmp(way, "locked") && mlockall(MCL_CURRENT)) return 1;
    if (!strcmp(way, "crumbs")) free(touched(LARGE));  // raises the threshold for nothing
    if (!strcmp(way, "crumbs")) leave(kept, COUNT, BYTES, 2);
    if (!strcmp(way, "fast")) leave(kept, FAST_COUNT, FAST_BYTES, FAST_KEPT);
    if (!strcmp(way, "arenas")) use_arenas();
    if (!strcmp(way, "threshold")) raise_threshold();
    pthread_t thread;
    if (!strcmp(way, "busy") && pthread_create(&thread, NULL, churn, NULL)) return 1;
    if (!strcmp(way, "pinned")) {
        for (size_t i = 0; i < COUNT; i++) kept[i] = touched(BYTES);
        put_pin();
        for (size_t i = 0; i < COUNT; i++) free(kept[i]);
    }
    if (!strcmp(way, "mapped")) memset(map(LARGE), 1, LARGE);
    if (!strcmp(way, "small")) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    if (!strcmp(way, "huge") || !strcmp(way, "small")) spread();
    if (!strcmp(way, "lazy")) madvise(memset(map(LARGE), 1, LARGE), LARGE, MADV_FREE);
    puts("ready");
    fflush(stdout);
    for (int letter; (letter = getchar()) != EOF;) {
        if (letter == 't') malloc_trim(0);
        if (letter == 'f') free(pin);
        if (letter == 'a') ask_all();
        if (letter == '\n') continue;
        puts("done");
        fflush(stdout);
    }
    return 0;
}
