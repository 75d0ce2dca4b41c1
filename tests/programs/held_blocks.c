// SPDX-License-Identifier: Apache-2.0
// Threads that allocate, resize and free at random and hand blocks to one another; at each line of
// input they stand still, and the blocks that they hold are written to the file of that name:
// address and usable size, as the allocator tells it. Of jemalloc and tcmalloc the line of output
// has what their statistics leave of pages beside blocks that are handed out or in caches; of
// jemalloc of the pages of small blocks. Of mimalloc it has what its areas of blocks of at most
// 8 KiB leave, which each thread visits of its own heap.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

struct area {  // of mimalloc (mi_heap_area_t of 2.0.9)
    char *blocks;
    size_t reserved_bytes, committed_bytes, used, usable_bytes, block_bytes;
};
typedef _Bool visit_area(const void *heap, const struct area *area, void *block, size_t, void *);

static size_t areas_beside;

static _Bool add_area(const void *heap, const struct area *area, void *block, size_t bytes,
                      void *context) {
    enum { LARGEST = 8 << 10, SLICE = 64 << 10 };
    const uintptr_t start = (uintptr_t)area->blocks / SLICE * SLICE;
    const uintptr_t end = (uintptr_t)(area->blocks + area->reserved_bytes + SLICE - 1);
    (void)heap, (void)block, (void)bytes, (void)context;
    if (area->block_bytes <= LARGEST)
        __atomic_fetch_add(&areas_beside,
                           end / SLICE * SLICE - start - area->used * area->block_bytes,
                           __ATOMIC_SEQ_CST);
    return 1;
}

// Adds what areas of the thread's heap leave, if mimalloc has it, once all that was freed is there.
static void visit_own(void) {
    void *(*own)(void);
    void (*collect)(void *, _Bool);
    _Bool (*visit)(void *, _Bool, visit_area *, void *);
    *(void **)&own = dlsym(RTLD_DEFAULT, "mi_heap_get_default");
    *(void **)&collect = dlsym(RTLD_DEFAULT, "mi_heap_collect");
    *(void **)&visit = dlsym(RTLD_DEFAULT, "mi_heap_visit_blocks");
    if (!own || !collect || !visit) return;
    collect(own(), 0);
    visit(own(), 0, add_area, NULL);
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
        visit_own();
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        if (is_over) return NULL;
    }
}

struct shown {
    void *held[HELD];
    void *busy_with;
};

static void *work_on(void *context) {
    struct shown *shown = context;
    uint32_t state = (uint32_t)(uintptr_t)context / sizeof *shown + 1;
    while (!is_over) {
        void **place = &shown->held[next(&state) % HELD];
        void *old = *place;
        __atomic_store_n(&shown->busy_with, old, __ATOMIC_SEQ_CST);
        __atomic_store_n(place, NULL, __ATOMIC_SEQ_CST);
        free(old);
        __atomic_store_n(&shown->busy_with, (void *)1, __ATOMIC_SEQ_CST);
        __atomic_store_n(place, take(&state), __ATOMIC_SEQ_CST);
        __atomic_store_n(&shown->busy_with, NULL, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static int work_in(const char *path) {
    const size_t bytes = THREADS * sizeof(struct shown);
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct shown *shown = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_t thread;
    if (file < 0 || ftruncate(file, (off_t)bytes) || shown == MAP_FAILED) return 3;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, work_on, &shown[i])) return 3;
    if (write(1, "ready\n", 6) != 6) return 3;
    return pause();
}

typedef int mallctl_call(const char *, void *, size_t *, void *, size_t);

static size_t figure(mallctl_call *control, const char *form, unsigned number) {
    char name[LINE];
    size_t value = 0, bytes = sizeof value;
    snprintf(name, sizeof name, form, number);
    control(name, &value, &bytes, NULL, 0);
    return value;
}

// Returns what is beside blocks in the slabs of jemalloc's arenas, or in the spans of tcmalloc's;
// 0: it is another allocator.
static size_t beside(void) {
    mallctl_call *control;
    int (*property)(const char *, size_t *);
    uint64_t epoch = 1;
    size_t sum = 0;
    *(void **)&control = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&property = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    if (property && property("tcmalloc.central_cache_free_bytes", &sum)) return sum;
    if (!control || control("epoch", NULL, NULL, &epoch, sizeof epoch)) return 0;
    for (unsigned i = 0; i < (unsigned)figure(control, "arenas.nbins", 0); i++)
        sum += figure(control, "stats.arenas.4096.bins.%u.curslabs", i) *
                   figure(control, "arenas.bin.%u.slab_size", i) -
               figure(control, "stats.arenas.4096.bins.%u.curregs", i) *
                   figure(control, "arenas.bin.%u.size", i);
    return sum;
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
    visit_own();
    printf("ready %zu\n", areas_beside ? areas_beside : beside());
    fflush(stdout);
}

int main(int argc, char **argv) {
    static char read[BUFSIZ], written[BUFSIZ];  // that the allocator does not have
    pthread_t threads[THREADS];
    setvbuf(stdin, read, _IOFBF, sizeof read);
    setvbuf(stdout, written, _IOFBF, sizeof written);
    char line[LINE];
    if (argc > 1) return work_in(argv[1]);
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 3;
    for (;;) {
        char *path = fgets(line, sizeof line, stdin);
        areas_beside = 0;
        pthread_barrier_wait(&begin);
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
