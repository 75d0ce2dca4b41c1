// SPDX-License-Identifier: Apache-2.0
// Counts by simulation how often the interval of a sampled peak holds the truth: heaps of several
// shapes whose blocks are sampled as docs/explain/sampling.md says. Half of them are ones of which
// the highest sum of samples alone is far too high.
#include "tool/model/sampled_peak.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/model/measure.h"

enum { BLOCKS_MOST = 4096, POINTS = 512, RUNS = 100, RUNS_LONG = 1000 };
static const double rate = 32;  // T, in sizes of a small block

struct block {
    double weight, variance, size;
};

// A heap with its samples, and the points of its timeline.
struct heap {
    uint64_t random;
    struct block blocks[BLOCKS_MOST];
    size_t first, count;  // a ring, the oldest first
    double held, allocated;
    struct estimate sum;
    double estimated;
    double most_held, most_estimated;
    struct estimate at_most;
    struct peak_point points[POINTS];
    size_t point_count;
    size_t steps, point_steps;  // of all so far, and of one point
};
static struct heap heap;

static double chance(void) {
    heap.random = heap.random * 6364136223846793005u + 1442695040888963407u;
    return (double)(heap.random >> 11) / 0x1p53;
}

static void start(uint64_t seed, size_t all_steps) {
    memset(&heap, 0, sizeof heap);
    heap.random = seed * 0x9e3779b97f4a7c15u + 1;
    heap.point_steps = all_steps / POINTS + 1;
    for (int i = 0; i < 4; i++) chance();
}

// Changes the sums by a block, and notes them as the timeline does.
static void book(const struct block *block, double sign) {
    size_t at = heap.steps++ / heap.point_steps;
    heap.held += sign * block->size;
    heap.estimated += sign * block->weight;
    heap.sum.bytes_variance += sign * block->variance;
    if (block->weight > 0) heap.sum.samples += sign > 0 ? 1 : -1;
    if (sign > 0) heap.allocated += block->size;
    struct peak_point *point = &heap.points[at < POINTS ? at : POINTS - 1];
    if (at >= heap.point_count) *point = (struct peak_point){.most_bytes = heap.estimated};
    heap.point_count = at < POINTS ? at + 1 : POINTS;
    point->most_bytes = fmax(point->most_bytes, heap.estimated);
    point->last_bytes = heap.estimated;
    point->allocated_bytes = heap.allocated;
    heap.most_held = fmax(heap.most_held, heap.held);
    if (heap.estimated <= heap.most_estimated) return;
    heap.most_estimated = heap.estimated;
    heap.at_most = heap.sum;
}

static struct block *block_at(size_t index) {
    return &heap.blocks[(heap.first + index) % BLOCKS_MOST];
}

static struct block make(double size) {
    double met = size < rate ? -expm1(-size / rate) : 1;
    struct block block = {.size = size};
    if (met >= 1 || chance() < met)
        block = (struct block){size / met, size * size * (1 - met) / (met * met), size};
    book(&block, 1);
    return block;
}

static void add(double size) {
    *block_at(heap.count) = make(size);
    heap.count++;
}

static void drop_oldest(void) {
    book(block_at(0), -1);
    heap.first++;
    heap.count--;
}

static void fill(size_t count, double size) {
    for (size_t i = 0; i < count; i++) add(size);
}

static void empty(size_t left) {
    while (heap.count > left) drop_oldest();
}

// Frees a block and makes one of the same size, so often: the oldest, or any.
static void churn(size_t count, bool is_any) {
    for (size_t i = 0; i < count; i++) {
        double size = block_at(0)->size;
        if (!is_any) {
            drop_oldest();
            add(size);
            continue;
        }
        struct block *block = block_at((size_t)(chance() * (double)heap.count));
        book(block, -1);
        *block = make(block->size);
    }
}

enum { SMALL = 256, TURNS = 150 };  // blocks, 8 samples of them; how often all are replaced

static void shape_random(uint64_t seed) {
    start(seed, 2 * SMALL * TURNS);
    fill(SMALL, 1);
    churn(SMALL * TURNS, true);
    empty(0);
}

static void shape_queue(uint64_t seed) {
    start(seed, 2 * SMALL * TURNS);
    fill(SMALL, 1);
    churn(SMALL * TURNS, false);
    empty(0);
}

static void shape_many_samples(uint64_t seed) {
    start(seed, 8 * SMALL * TURNS);
    fill(8 * SMALL, 1);
    churn(4 * SMALL * TURNS, true);
    empty(0);
}

static void shape_ramp(uint64_t seed) {
    start(seed, 4 * SMALL * 4);
    fill(4 * SMALL, 1);
    empty(0);
}

// Keeps most blocks to the end: their samples are never drawn again.
static void shape_stays(uint64_t seed) {
    start(seed, 2 * SMALL * TURNS);
    fill(2 * SMALL, 1);
    for (int i = 0; i < SMALL * TURNS; i++) {
        struct block block = make(1);
        book(&block, -1);
    }
    empty(0);
}

// A queue that grows to four times its length as it is worked on.
static void shape_grows(uint64_t seed) {
    start(seed, 6 * SMALL * TURNS);
    fill(SMALL, 1);
    for (int i = 0; i < 3 * SMALL; i++) {
        add(1);
        churn(TURNS / 2, true);
    }
    empty(0);
}

static void shape_spike_of(uint64_t seed, size_t more, double size) {
    start(seed, 2 * SMALL * TURNS);
    fill(SMALL, 1);
    churn(SMALL * TURNS / 2, true);
    fill(more, size);
    empty(SMALL);
    churn(SMALL * TURNS / 2, true);
    empty(0);
}

static void shape_spike_small(uint64_t seed) {
    shape_spike_of(seed, SMALL / 2, 1);
}

static void shape_spike(uint64_t seed) {
    shape_spike_of(seed, SMALL, 1);
}

static void shape_spike_large(uint64_t seed) {
    shape_spike_of(seed, 6 * SMALL, 1);
}

static void shape_spike_certain(uint64_t seed) {
    shape_spike_of(seed, 40, 64);
}

static void shape_steps(uint64_t seed) {
    start(seed, 8 * SMALL * 40);
    fill(SMALL, 1);
    churn(SMALL * 40, true);
    fill(3 * SMALL, 1);
    churn(SMALL * 40, true);
    empty(2 * SMALL);
    churn(SMALL * 40, true);
    empty(0);
}

// Large blocks, which are all sampled, beside small ones.
static void shape_certain(uint64_t seed) {
    start(seed, 2 * SMALL * TURNS);
    for (int i = 0; i < SMALL; i++) add(i % 4 ? 1 : 64);
    churn(SMALL * TURNS, true);
    empty(0);
}

static void shape_short(uint64_t seed) {
    start(seed, 2 * SMALL);
    fill(SMALL, 1);
    churn(SMALL / 2, true);
    empty(0);
}

// One run: what is said of the peak, and what it was.
static struct measured peak_of(void) {
    const struct sampled_scale scale = {
        .rate_least = rate, .rate_most = rate, .blocks_weight = rate};
    struct estimate estimate =
        sampled_estimate(&scale, heap.at_most.samples, 0, heap.at_most.bytes_variance, 0);
    const struct peak_known known = {
        .bytes = heap.most_estimated, .variance = estimate.bytes_variance, .sample_bytes = rate};
    double over = sampled_peak_over(heap.points, heap.point_count, &known);
    estimate_take_over(&estimate, over, 0, known.bytes);
    return measured_bytes((int64_t)(heap.most_estimated - over), &estimate);
}

// Most of what the interval misses is seldom: the one of a sum that was not chosen holds the truth
// in 94.7 of 100 by Poisson's law, at these numbers of samples.
enum { HOLDS = 95, HOLDS_UNCHOSEN = 91 };

struct shape {
    const char *name;
    void (*run)(uint64_t seed);
    double off;  // what is said may be off by this share of the truth, in the mean of all runs
    int holds;   // of 100 runs, in how many the interval holds the truth at least
};

static const struct shape shapes[] = {
    {"blocks replaced at random", shape_random, 0.15, HOLDS},
    {"a queue", shape_queue, 0.15, HOLDS},
    {"many samples", shape_many_samples, 0.1, HOLDS},
    {"ramp, then fall", shape_ramp, 0.1, HOLDS_UNCHOSEN},
    {"most stays", shape_stays, 0.1, HOLDS_UNCHOSEN},
    {"grows as it is replaced", shape_grows, 0.15, HOLDS},
    {"a small spike", shape_spike_small, 0.4, HOLDS},
    {"a spike", shape_spike, 0.5, HOLDS},
    {"a large spike", shape_spike_large, 0.1, HOLDS},
    {"a spike of large blocks", shape_spike_certain, 0.1, HOLDS},
    {"steps", shape_steps, 0.15, HOLDS},
    {"large blocks beside", shape_certain, 0.1, HOLDS},
    {"short", shape_short, 0.15, HOLDS},
};

static bool holds_truth(struct measured said) {
    return (double)measured_least(said) <= heap.most_held + 1 &&
           (double)measured_most(said) >= heap.most_held - 1;
}

static void check_shape(const struct shape *shape, int runs) {
    int held = 0;
    double sum = 0;
    for (int run = 1; run <= runs; run++) {
        shape->run((uint64_t)run);
        struct measured said = peak_of();
        held += holds_truth(said);
        sum += (double)said.value / heap.most_held;
    }
    if (held * 100 < shape->holds * runs)
        fail_msg("%s: the interval holds the truth in %d of %d", shape->name, held, runs);
    if (fabs(sum / runs - 1) > shape->off)
        fail_msg("%s: %f of the truth is said", shape->name, sum / runs);
}

static void test_shapes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(&shapes[i], getenv("CAIRN_LONG") ? RUNS_LONG : RUNS);
}

// Takes nothing off where no other sums are known, and where no variance means no noise.
static void test_unknown(void **state) {
    (void)state;
    const struct peak_known known = {.bytes = 100, .variance = 3200, .sample_bytes = rate};
    const struct peak_known counted = {.bytes = 100, .sample_bytes = rate};
    const struct peak_point points[] = {{100, 100, 100}, {60, 100, 100000}};
    assert_true(sampled_peak_over(points, 0, &known) == 0);
    assert_true(sampled_peak_over(points, 2, &counted) == 0);
    assert_true(sampled_peak_over(points, 2, &known) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
