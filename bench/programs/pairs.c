// SPDX-License-Identifier: Apache-2.0
// pairs MODE[:SIZES] DEPTH STACKS PAIRS [THREADS [wait]]: nanoseconds of a malloc+free pair from
// stacks of a given depth, in each thread.
//   one      one stack again and again
//   ring     the same, each block lives for 1,000 further allocations
//   grow     the same, each block a byte larger than the one that is freed: every free leaves a new
//            peak of the heap behind
//   resize   one, and before it is freed each block gets 16 bytes more by realloc
//   walk     the leaves of a tree with STACKS leaves, four to a branch, in their order
//   random   STACKS stacks that differ from the outermost frame on, in random order
//   never    stacks that differ from the outermost frame on and never repeat
// SIZES: blocks have so many sizes in turn, 16 bytes apart, or `random`: any up to 1,024 bytes.
// PAIRS pairs a thread are done in REPEATS parts, timed one by one, with all threads waiting for
// each other between them. Prints `least middle mean processor pairs`: three figures over the parts
// and the processor time, in nanoseconds a pair, and the number of pairs of all threads. With more
// threads than processors the first three are divided by how many share one. Stacks differ by call
// sites: each level calls the next from one of four places. With `wait` it says so and waits for a
// line of input before the first pair.
#include "bench/programs/parts.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { RING = 1000, BLOCK_BYTES = 48, STEP_BYTES = 16, RANDOM_BYTES = 1024, THREADS_MAX = 64 };

enum mode {
    MODE_ONE,
    MODE_RING,
    MODE_GROW,
    MODE_RESIZE,
    MODE_WALK,
    MODE_RANDOM,
    MODE_NEVER,
    MODES
};
static const char *const mode_names[MODES] = {"one",  "ring",   "grow", "resize",
                                              "walk", "random", "never"};

static struct {
    enum mode mode;
    unsigned depth, threads;
    unsigned tree_levels;  // of `depth`, the innermost ones; 0 unless MODE_WALK
    int waits;
    uint64_t stacks, pairs_a_part;
    uint32_t sizes[RING];  // of the blocks, in turn
} plan;

static pthread_barrier_t barrier;

struct worker {
    pthread_t thread;
    uint64_t number;  // of the next stack
    double start_ns[PARTS], end_ns[PARTS];
    void *ring[RING];
    unsigned at;         // in the ring, and in the sizes
    size_t grown_bytes;  // MODE_GROW: how much larger blocks are by now
};
// One for the main thread, which works too.
static struct worker workers[THREADS_MAX];

__attribute__((noinline)) static void leaf(struct worker *self) {
    void *block = malloc(plan.sizes[self->at] + self->grown_bytes);
    __asm__ volatile("" : : "r"(block) : "memory");
    if (plan.mode == MODE_RESIZE) {
        block = realloc(block, plan.sizes[self->at] + STEP_BYTES);
        __asm__ volatile("" : : "r"(block) : "memory");
    }
    if (plan.mode == MODE_RING || plan.mode == MODE_GROW) {
        free(self->ring[self->at]);
        self->ring[self->at] = block;
    } else {
        free(block);
    }
    self->at = (self->at + 1) % RING;
    self->grown_bytes += plan.mode == MODE_GROW && self->at == 0;
}

// Walks a tree of so many levels: each calls the next from four places, and the last the leaf.
__attribute__((noinline)) static void tree(unsigned levels, struct worker *self) {
    if (levels == 0) {
        leaf(self);
        return;
    }
    tree(levels - 1, self);
    __asm__ volatile("nop");
    tree(levels - 1, self);
    __asm__ volatile("nop;nop");
    tree(levels - 1, self);
    __asm__ volatile("nop;nop;nop");
    tree(levels - 1, self);
    __asm__ volatile("");
}

static void do_innermost(struct worker *self) {
    if (plan.mode == MODE_WALK) {
        for (uint64_t i = 0; i < plan.pairs_a_part; i += plan.stacks) tree(plan.tree_levels, self);
    } else if (plan.mode <= MODE_RESIZE) {
        for (uint64_t i = 0; i < plan.pairs_a_part; i++) leaf(self);
    } else {
        leaf(self);
    }
}

// Two bits of `path` choose the place of each call; after 32 levels they come again.
__attribute__((noinline)) static void level(unsigned depth, uint64_t path, struct worker *self) {
    if (depth == 0) {
        do_innermost(self);
        return;
    }
    uint64_t rest = path >> 2 | path << 62;
    switch (path & 3) {
    case 0:
        level(depth - 1, rest, self);
        break;
    case 1:
        level(depth - 1, rest, self);
        __asm__ volatile("nop");
        break;
    case 2:
        level(depth - 1, rest, self);
        __asm__ volatile("nop;nop");
        break;
    default:
        level(depth - 1, rest, self);
        __asm__ volatile("nop;nop;nop");
    }
    __asm__ volatile("");
}

// A bijection that spreads a number over 64 bits (the finalizer of splitmix64).
static uint64_t mix(uint64_t number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

static void do_part(struct worker *self) {
    if (plan.mode != MODE_RANDOM && plan.mode != MODE_NEVER) {
        level(plan.depth - plan.tree_levels, 0, self);
        return;
    }
    for (uint64_t i = 0; i < plan.pairs_a_part; i++) {
        uint64_t number = ++self->number;
        if (plan.mode == MODE_RANDOM) number = mix(number) % plan.stacks;
        level(plan.depth, mix(number + 1), self);
    }
}

static void *work(void *arg) {
    struct worker *self = arg;
    for (unsigned i = 0; i < PARTS; i++) {
        pthread_barrier_wait(&barrier);
        self->start_ns[i] = clock_ns(CLOCK_MONOTONIC);
        do_part(self);
        self->end_ns[i] = clock_ns(CLOCK_MONOTONIC);
    }
    return NULL;
}

static double part_ns(unsigned part) {
    double start = workers->start_ns[part], end = workers->end_ns[part];
    for (struct worker *other = workers + 1; other < workers + plan.threads; other++) {
        if (other->start_ns[part] < start) start = other->start_ns[part];
        if (other->end_ns[part] > end) end = other->end_ns[part];
    }
    return end - start;
}

static void print_figures(double processor_ns) {
    double sharing = (double)plan.threads / (double)sysconf(_SC_NPROCESSORS_ONLN);
    double pairs = (double)plan.pairs_a_part, ns[PARTS];
    for (unsigned i = 0; i < PARTS; i++) ns[i] = part_ns(i);
    parts_print(ns, pairs * (sharing > 1 ? sharing : 1), processor_ns,
                pairs * PARTS * plan.threads);
}

static int read_mode(char *word) {
    char *sizes = strchr(word, ':');
    if (sizes) *sizes++ = 0;
    while (plan.mode < MODES && strcmp(word, mode_names[plan.mode])) plan.mode++;
    int is_random = sizes && !strcmp(sizes, "random");
    uint64_t count = sizes && !is_random ? strtoull(sizes, NULL, 10) : 1;
    if (plan.mode == MODES || !count) return 0;
    for (uint64_t i = 0; i < RING; i++)
        plan.sizes[i] = (uint32_t)(is_random ? mix(i + 1) % RANDOM_BYTES + 1
                                             : BLOCK_BYTES + i % count * STEP_BYTES);
    return 1;
}

static int read_plan(int argc, char **argv) {
    if (argc < 5 || !read_mode(argv[1])) return 0;
    plan.depth = (unsigned)atoi(argv[2]);
    plan.stacks = strtoull(argv[3], NULL, 10);
    plan.pairs_a_part = strtoull(argv[4], NULL, 10) / PARTS + 1;
    plan.threads = argc > 5 ? (unsigned)atoi(argv[5]) : 1;
    plan.waits = argc > 6 && !strcmp(argv[6], "wait");
    if (plan.mode == MODE_WALK) {
        while (1ull << (2 * plan.tree_levels) < plan.stacks) plan.tree_levels++;
        plan.stacks = 1ull << (2 * plan.tree_levels);
        plan.pairs_a_part = (plan.pairs_a_part / plan.stacks + 1) * plan.stacks;
    }
    return plan.stacks && plan.threads && plan.threads <= THREADS_MAX &&
           plan.tree_levels <= plan.depth;
}

int main(int argc, char **argv) {
    if (!read_plan(argc, argv)) {
        fprintf(stderr,
                "usage: pairs one|ring|grow|walk|random|never[:SIZES] DEPTH STACKS PAIRS [THREADS "
                "[wait]]\n");
        return 2;
    }
    pthread_barrier_init(&barrier, NULL, plan.threads);
    for (unsigned i = 1; i < plan.threads; i++) {
        workers[i].number = (uint64_t)i << 40;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) return 1;
    }
    if (plan.waits) {
        char line[16];
        if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, line, sizeof line) < 0)
            return 1;
    }
    double start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    work(workers);
    for (unsigned i = 1; i < plan.threads; i++) pthread_join(workers[i].thread, NULL);
    print_figures(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start);
    return 0;
}
