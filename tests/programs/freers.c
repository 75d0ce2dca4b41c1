// SPDX-License-Identifier: Apache-2.0
// freers MODE [THREADS]: blocks that are made in known functions, freed or resized in known others,
// by known threads, with a ledger of who freed what, as lines on stdout at the end:
//   "PID stack MAKER FREER blocks bytes"      by the functions: make_0 .. make_3, free_0 .. free_3;
//                                             a block from resize_it is maker 4, freed there freer
//                                             4
//   "PID thread OWNER FREER blocks bytes"     by the threads, whose names are "worker-N"
// Modes:
//   threads  THREADS threads exchange blocks through shared places
//   fork     the same; then a child frees half of what is left, its parent the other half
//   many     more pairs of stacks than a recording keeps: 1,024 stacks make, 512 free
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SITES = 5,
    RESIZED = 4,
    THREADS_MAX = 8,
    PLACES = 64,
    ROUNDS = 20000,
    CHILD_ROUNDS = 2000,
    MANY_ROUNDS = 400000
};

// A block begins with where it comes from.
struct block {
    uint32_t maker, owner;
    uint64_t bytes;
};

struct sum {
    uint64_t blocks, bytes;
};

struct worker {
    pthread_t thread;
    uint32_t number;
    uint64_t random;
    struct sum stacks[SITES][SITES], threads[THREADS_MAX][THREADS_MAX];
};

static struct worker workers[THREADS_MAX];
static uint32_t thread_count;
static struct block *places[PLACES];  // (atomic)
static pthread_barrier_t barrier;

static void add(struct sum *sum, uint64_t bytes) {
    sum->blocks++;
    sum->bytes += bytes;
}

static uint32_t next(struct worker *worker) {
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(worker->random >> 33);
}

// A declaration at their ends, so that each stands as a statement.
#define MAKER(n)                                                                                   \
    __attribute__((noinline)) static struct block *make_##n(uint64_t bytes) {                      \
        struct block *block = malloc(bytes);                                                       \
        __asm__ volatile("" : "+r"(block) : : "memory");                                           \
        return block;                                                                              \
    }                                                                                              \
    struct block
#define FREER(n)                                                                                   \
    __attribute__((noinline)) static void free_##n(struct block *block) {                          \
        free(block);                                                                               \
        __asm__ volatile("" : : : "memory");                                                       \
    }                                                                                              \
    struct block
MAKER(0);
MAKER(1);
MAKER(2);
MAKER(3);
FREER(0);
FREER(1);
FREER(2);
FREER(3);

__attribute__((noinline)) static struct block *resize_it(struct block *block, uint64_t bytes) {
    block = realloc(block, bytes);
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

static struct block *make(struct worker *worker) {
    static struct block *(*const makers[])(uint64_t) = {make_0, make_1, make_2, make_3};
    uint32_t maker = next(worker) % RESIZED;
    uint64_t bytes = sizeof(struct block) + next(worker) % 300;
    struct block *block = makers[maker](bytes);
    *block = (struct block){maker, worker->number, bytes};
    return block;
}

static void note(struct worker *worker, const struct block *block, uint32_t freer) {
    add(&worker->stacks[block->maker][freer], block->bytes);
    add(&worker->threads[block->owner][worker->number], block->bytes);
}

static void give(struct worker *worker, struct block *block) {
    static void (*const freers[])(struct block *) = {free_0, free_1, free_2, free_3};
    uint32_t freer = next(worker) % RESIZED;
    note(worker, block, freer);
    freers[freer](block);
}

static struct block *resize(struct worker *worker, struct block *block) {
    uint64_t bytes = sizeof *block + next(worker) % 3000;
    note(worker, block, RESIZED);
    block = resize_it(block, bytes);
    *block = (struct block){RESIZED, worker->number, bytes};
    return block;
}

static void *work(void *context) {
    struct worker *worker = context;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", worker->number);
    pthread_setname_np(pthread_self(), name);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) {
        struct block *mine = make(worker);
        if (i % 5 == 0) mine = resize(worker, mine);
        struct block *other =
            __atomic_exchange_n(&places[next(worker) % PLACES], mine, __ATOMIC_ACQ_REL);
        if (other) give(worker, i % 7 ? other : resize(worker, other));
    }
    pthread_barrier_wait(&barrier);  // no thread takes over another's place in cairn
    return NULL;
}

static void print_all(void) {
    for (uint32_t a = 0; a < THREADS_MAX; a++)
        for (uint32_t b = 0; b < THREADS_MAX; b++) {
            struct sum stacks = {0}, threads = {0};
            for (uint32_t i = 0; i < THREADS_MAX; i++) {
                const struct worker *worker = &workers[i];
                threads.blocks += worker->threads[a][b].blocks;
                threads.bytes += worker->threads[a][b].bytes;
                if (a >= SITES || b >= SITES) continue;
                stacks.blocks += worker->stacks[a][b].blocks;
                stacks.bytes += worker->stacks[a][b].bytes;
            }
            if (stacks.blocks)
                printf("%d stack %u %u %lu %lu\n", getpid(), a, b, stacks.blocks, stacks.bytes);
            if (threads.blocks)
                printf("%d thread %u %u %lu %lu\n", getpid(), a, b, threads.blocks, threads.bytes);
        }
    fflush(stdout);
}

static void run_threads(void) {
    pthread_barrier_init(&barrier, NULL, thread_count);
    for (uint32_t i = 0; i < thread_count; i++) {
        workers[i].number = i;
        workers[i].random = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) abort();
    }
    for (uint32_t i = 0; i < thread_count; i++) pthread_join(workers[i].thread, NULL);
}

// Gives every second block that is left, as the last worker's number: of no thread that is checked.
static void give_half(uint32_t first) {
    for (uint32_t i = first; i < PLACES; i += 2) {
        if (places[i]) give(&workers[THREADS_MAX - 1], places[i]);
        places[i] = NULL;
    }
}

static void run_fork(void) {
    run_threads();
    workers[THREADS_MAX - 1].number = THREADS_MAX - 1;
    pid_t child = fork();
    if (child == 0) {
        memset(workers, 0, sizeof workers);
        workers[THREADS_MAX - 1].number = THREADS_MAX - 1;
    }
    give_half(child == 0);
    if (child == 0) {
        // enough that its recording is kept
        for (int i = 0; i < CHILD_ROUNDS; i++)
            give(&workers[THREADS_MAX - 1], make(&workers[THREADS_MAX - 1]));
        print_all();
        exit(0);
    }
    waitpid(child, NULL, 0);
}

// Stacks by the bits of `way`, one call a bit.
typedef void leaf_fn(void);
static void *kept;
static void make_kept(void) {
    kept = malloc(sizeof(struct block));
}
static void free_kept(void) {
    free(kept);
    __asm__ volatile("" : : : "memory");
}
__attribute__((noinline)) static void branch(uint32_t way, uint32_t levels, leaf_fn *leaf) {
    if (!levels)
        leaf();
    else if (way & 1)
        branch(way >> 1, levels - 1, leaf);
    else
        branch(way >> 1, levels - 1, leaf);
    __asm__ volatile("" : : : "memory");
}

// Both numbers go round, so that every pair comes once before any comes again.
static void run_many(void) {
    enum { MAKING_LEVELS = 10, FREEING_LEVELS = 9 };
    for (uint32_t i = 0; i < MANY_ROUNDS; i++) {
        branch(i, MAKING_LEVELS, make_kept);
        branch(i >> MAKING_LEVELS, FREEING_LEVELS, free_kept);
    }
    printf("%d many %d\n", getpid(), MANY_ROUNDS);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    thread_count = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    if (thread_count < 1 || thread_count >= THREADS_MAX) return 2;
    if (!strcmp(mode, "threads"))
        run_threads();
    else if (!strcmp(mode, "fork"))
        run_fork();
    else if (!strcmp(mode, "many"))
        run_many();
    else
        return 2;
    print_all();
    return 0;
}
