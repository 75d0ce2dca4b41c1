// SPDX-License-Identifier: Apache-2.0
// What samples say, against what was allocated: thousands of simulated runs with fixed seeds. A
// mean over runs may miss the truth by four of its own standard errors, which an unbiased estimate
// does once in 16,000 seeds, and a wrong one does at once.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/sample.h"
#include "runtime/sample/countdown.h"
#include "runtime/sample/weight.h"

enum { RATE = 512 << 10, KIB = 1024 };
static const double standard_errors = 4, interval = 1.96;

// What was allocated, and what the samples make of it.
struct sum {
    double bytes, blocks;
};
struct estimate {
    struct sum sum, variance;
    uint64_t samples;
};

// One thread, as the hot path and the slow one together treat it.
struct simulated {
    struct countdown countdown;
    int64_t left;
    uint64_t rate;
};

static void begin(struct simulated *thread, uint64_t seed, uint64_t number, uint64_t rate) {
    memset(thread, 0, sizeof *thread);
    prng_start(&thread->countdown.chance, seed, number);
    thread->rate = rate;
}

static bool allocate(struct simulated *thread, uint64_t size) {
    int64_t charge = (int64_t)countdown_charge(size);
    if (charge < thread->left) {
        thread->left -= charge;
        return false;
    }
    if (!countdown_pay(&thread->countdown, &thread->left, size, thread->rate)) return false;
    return true;
}

// After a sample: the rate it had, and a new countdown.
static uint64_t sampled_rate(struct simulated *thread, uint64_t size) {
    uint64_t rate = thread->countdown.rate_bytes;
    if (countdown_charge(size) < rate)
        countdown_draw(&thread->countdown, &thread->left, thread->rate);
    return rate;
}

static void add(struct estimate *estimate, uint64_t size, uint64_t rate) {
    struct weight weight = weight_of(size, rate);
    estimate->sum.bytes += (double)weight.bytes;
    estimate->sum.blocks += 1 + (double)weight.extra / CAIRN_SAMPLE_ONE;
    estimate->variance.bytes += weight.bytes_variance;
    estimate->variance.blocks += weight.blocks_variance;
    estimate->samples++;
}

static void run(struct simulated *thread, uint64_t size, struct estimate *estimate) {
    if (allocate(thread, size)) add(estimate, size, sampled_rate(thread, size));
}

// Over many runs: the means of the estimates, and how often an interval held the truth.
struct trial {
    struct sum sum, squares, covered;
    uint64_t runs;
};

static void trial_add(struct trial *trial, const struct estimate *estimate, struct sum truth) {
    double bytes = estimate->sum.bytes - truth.bytes, blocks = estimate->sum.blocks - truth.blocks;
    trial->sum.bytes += bytes;
    trial->sum.blocks += blocks;
    trial->squares.bytes += bytes * bytes;
    trial->squares.blocks += blocks * blocks;
    trial->covered.bytes += fabs(bytes) <= interval * sqrt(estimate->variance.bytes) + 1;
    trial->covered.blocks += fabs(blocks) <= interval * sqrt(estimate->variance.blocks) + 1e-3;
    trial->runs++;
}

static void check_mean(const char *what, double sum, double squares, double runs) {
    double mean = sum / runs, error = sqrt(squares / runs / runs);
    if (fabs(mean) > standard_errors * error + 1)
        fail_msg("%s: off by %.3f on average, standard error %.3f", what, mean, error);
}

static void check_unbiased(const char *what, const struct trial *trial) {
    check_mean(what, trial->sum.bytes, trial->squares.bytes, (double)trial->runs);
    check_mean(what, trial->sum.blocks, trial->squares.blocks, (double)trial->runs);
}

static const uint64_t mix[] = {64,        80,        200,       4 * KIB,    30 * KIB,
                               100 * KIB, 400 * KIB, 600 * KIB, 1024 * KIB, 4096 * KIB};
enum { MIX = sizeof mix / sizeof *mix };

// Each size alone and all together, 64 B to 4 MiB.
static void test_sizes(void **state) {
    (void)state;
    for (size_t only = 0; only <= MIX; only++) {
        struct trial trial = {0};
        for (uint64_t seed = 0; seed < 1500; seed++) {
            struct simulated thread;
            struct estimate estimate = {0};
            struct sum truth = {0};
            begin(&thread, seed, only, RATE);
            for (int i = 0; i < 1000; i++) {
                uint64_t size = only < MIX ? mix[only] : mix[(size_t)(i * 7) % MIX];
                run(&thread, size, &estimate);
                truth.bytes += (double)size;
                truth.blocks += 1;
            }
            trial_add(&trial, &estimate, truth);
        }
        check_unbiased("sizes", &trial);
    }
}

// The part of a mix that one size has is right as well: a stack allocates one size among others.
static void test_parts_of_a_mix(void **state) {
    (void)state;
    struct trial trials[MIX] = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct simulated thread;
        struct estimate estimates[MIX] = {0};
        begin(&thread, seed, 17, RATE);
        for (size_t i = 0; i < 200 * MIX; i++) run(&thread, mix[i % MIX], &estimates[i % MIX]);
        for (size_t i = 0; i < MIX; i++)
            trial_add(&trials[i], &estimates[i], (struct sum){200 * (double)mix[i], 200});
    }
    for (size_t i = 0; i < MIX; i++) check_unbiased("parts", &trials[i]);
}

// Threads that end long before their countdown: what they allocate is seen as often as any other.
static void test_short_threads(void **state) {
    (void)state;
    struct trial trial = {0};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct estimate estimate = {0};
        for (uint64_t number = 0; number < 200; number++) {
            struct simulated thread;
            begin(&thread, seed, number, RATE);
            for (int i = 0; i < 20; i++) run(&thread, 10 * KIB, &estimate);
        }
        trial_add(&trial, &estimate, (struct sum){200.0 * 20 * 10 * KIB, 200 * 20});
    }
    check_unbiased("short threads", &trial);
}

// realloc: every step is a block freed and a fresh one of the new size, also where it grew in
// place.
static void test_growth(void **state) {
    (void)state;
    struct trial all = {0}, living = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct simulated thread;
        struct estimate allocated = {0}, live = {0};
        struct sum truth = {0};
        begin(&thread, seed, 23, RATE);
        for (int block = 0; block < 10; block++) {
            uint64_t size = 64, rate = 0;
            for (; size <= 256 * KIB; size += size / 2) {
                rate = 0;
                if (allocate(&thread, size)) {
                    rate = sampled_rate(&thread, size);
                    add(&allocated, size, rate);
                }
                truth.bytes += (double)size;
                truth.blocks += 1;
            }
            if (rate) add(&live, size - size / 3, rate);
        }
        uint64_t last = 64;
        while (last + last / 2 <= 256 * KIB) last += last / 2;
        trial_add(&all, &allocated, truth);
        // what is left of the chain is its last block, sampled when it was made or not
        struct estimate exact = {.variance = live.variance};
        for (uint64_t i = 0; i < live.samples; i++) add(&exact, last, RATE);
        trial_add(&living, &exact, (struct sum){10.0 * (double)last, 10});
    }
    check_unbiased("growth", &all);
    check_unbiased("what grew", &living);
}

// A forked child draws anew: its blocks are right by themselves.
static void test_forks(void **state) {
    (void)state;
    struct trial trial = {0};
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct simulated parent, child;
        struct estimate in_parent = {0}, in_child = {0};
        begin(&parent, seed, 1, RATE);
        for (int i = 0; i < 500; i++) run(&parent, 20 * KIB, &in_parent);
        child = parent;
        child.left = 0;  // wiped by the kernel
        prng_start(&child.countdown.chance, prng_seed_of_child(seed, 0), 1);
        for (int i = 0; i < 500; i++) run(&child, 20 * KIB, &in_child);
        trial_add(&trial, &in_child, (struct sum){500.0 * 20 * KIB, 500});
    }
    check_unbiased("forks", &trial);
}

// Of the bytes: 93 to 97 of 100 intervals hold the truth.
static void check_covered(const char *what, const struct trial *trial) {
    double share = trial->covered.bytes / (double)trial->runs;
    if (share < 0.93 || share > 0.97) fail_msg("%s: bytes covered %.3f", what, share);
}

// A run whose rate doubles four times on the way, and once comes down again.
static void test_changing_rate(void **state) {
    (void)state;
    struct trial trial = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct simulated thread;
        struct estimate estimate = {0};
        struct sum truth = {0};
        begin(&thread, seed, 3, RATE / 16);
        for (size_t i = 0; i < 3000; i++) {
            if (i && i % 500 == 0) thread.rate = i < 2500 ? thread.rate * 2 : thread.rate / 2;
            run(&thread, mix[i % 7], &estimate);
            truth.bytes += (double)mix[i % 7];
            truth.blocks += 1;
        }
        trial_add(&trial, &estimate, truth);
    }
    check_unbiased("changing rate", &trial);
    check_covered("changing rate", &trial);
}

// Several threads, each with random numbers of its own, and rates that follow the processor's time:
// up by turns, and down again.
static void test_threads_together(void **state) {
    (void)state;
    enum { THREADS = 6, BLOCKS = 1500, TURN = 100 };
    struct trial trial = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct simulated threads[THREADS];
        struct estimate estimate = {0};
        struct sum truth = {0};
        uint64_t rate = RATE / 32;
        for (uint64_t i = 0; i < THREADS; i++) begin(&threads[i], seed, 60 + i, rate);
        for (size_t i = 0; i < BLOCKS; i++) {
            if (i % TURN == 0) rate = i / TURN % 5 < 3 ? rate * 2 : rate / 2;
            if (rate > RATE / 8) rate = RATE / 8;
            for (size_t at = 0; at < THREADS; at++) {
                uint64_t size = mix[(i + at) % 6];
                threads[at].rate = rate;
                run(&threads[at], size, &estimate);
                truth.bytes += (double)size;
                truth.blocks += 1;
            }
        }
        trial_add(&trial, &estimate, truth);
    }
    check_unbiased("threads", &trial);
    check_covered("threads", &trial);
}

struct kept {
    uint64_t size, rate;
};

// A bounded number of samples: beyond it the rate doubles and samples are dropped by lot.
static void test_thinning(void **state) {
    (void)state;
    enum { MOST = 200 };
    struct trial trial = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct kept kept[MOST];
        size_t count = 0;
        struct simulated thread;
        struct sum truth = {0};
        begin(&thread, seed, 4, RATE / 32);
        for (size_t i = 0; i < 4000; i++) {
            uint64_t size = mix[i % 6];
            truth.bytes += (double)size;
            truth.blocks += 1;
            if (!allocate(&thread, size)) continue;
            kept[count++] = (struct kept){size, sampled_rate(&thread, size)};
            if (count < MOST) continue;
            size_t staying = 0;
            thread.rate *= 2;
            for (size_t j = 0; j < count; j++) {
                bool is_rarer = kept[j].rate < thread.rate;
                if (is_rarer && !weight_stays(&thread.countdown.chance, kept[j].size, kept[j].rate,
                                              thread.rate))
                    continue;
                if (is_rarer) kept[j].rate = thread.rate;
                kept[staying++] = kept[j];
            }
            count = staying;
        }
        struct estimate estimate = {0};
        for (size_t i = 0; i < count; i++) add(&estimate, kept[i].size, kept[i].rate);
        assert_true(thread.rate >= RATE / 8 && count < MOST);
        trial_add(&trial, &estimate, truth);
    }
    check_unbiased("thinning", &trial);
    check_covered("thinning", &trial);
}

// Intervals hold the truth in 93 to 97 of 100 runs, for mixes that give 30 samples and more.
// Numbers of blocks are as good where sizes are alike; where a few samples of the smallest size
// stand for most blocks, no interval can tell what was not met.
static void test_coverage(void **state) {
    (void)state;
    static const uint64_t sizes[][3] = {
        {256, 256, 256}, {64, 256, 1024}, {1024, 20 * KIB, 100 * KIB}, {64, 4 * KIB, 24 * KIB}};
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        struct trial trial = {0};
        for (uint64_t seed = 0; seed < 3000; seed++) {
            struct simulated thread;
            struct estimate estimate = {0};
            struct sum truth = {0};
            begin(&thread, seed, 40 + which, RATE / 16);
            for (int i = 0; truth.bytes < 100 * RATE / 16; i++) {
                run(&thread, sizes[which][i % 3], &estimate);
                truth.bytes += (double)sizes[which][i % 3];
                truth.blocks += 1;
            }
            trial_add(&trial, &estimate, truth);
        }
        double share = trial.covered.bytes / (double)trial.runs;
        if (share < 0.93 || share > 0.97) fail_msg("mix %zu: bytes covered %.3f", which, share);
        share = trial.covered.blocks / (double)trial.runs;
        bool is_of_one_size = sizes[which][0] == sizes[which][2];
        if (is_of_one_size && (share < 0.93 || share > 0.97)) fail_msg("blocks: %.3f", share);
    }
}

static void test_large_blocks(void **state) {
    (void)state;
    struct simulated thread;
    begin(&thread, 1, 1, RATE);
    run(&thread, 1, &(struct estimate){0});
    int64_t left = thread.left, rest = thread.countdown.rest_bytes;
    for (uint64_t size = RATE; size < 64ull << 30; size *= 3) {
        struct weight weight = weight_of(size, RATE);
        assert_true(allocate(&thread, size));
        sampled_rate(&thread, size);
        assert_int_equal(weight.bytes, size);
        assert_int_equal(weight.extra, 0);
        assert_true(weight.bytes_variance == 0 && weight.blocks_variance == 0);
    }
    assert_true(thread.left == left && thread.countdown.rest_bytes == rest);
}

// Size 0 takes one byte, so that it is seen; a thread without a countdown draws one and is not
// sampled for that alone.
static void test_edges(void **state) {
    (void)state;
    uint64_t samples = 0, first = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct simulated thread;
        begin(&thread, seed, 9, 8);
        if (allocate(&thread, 1)) first++, sampled_rate(&thread, 1);
        for (int i = 0; i < 8; i++)
            if (allocate(&thread, 0)) samples++, sampled_rate(&thread, 0);
    }
    // 1 - exp(-1/8) = 0.1175 of them, within five standard deviations
    assert_in_range(first, 2350 - 230, 2350 + 230);
    assert_in_range(samples, 18800 - 700, 18800 + 700);
    assert_true(weight_of(0, 8).bytes == 0 && weight_of(0, 8).extra > 0);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct simulated thread;
        begin(&thread, seed, 10, 1);
        assert_true(allocate(&thread, 0) && allocate(&thread, 1) && allocate(&thread, 99));
    }
}

static void test_same_seed(void **state) {
    (void)state;
    struct simulated first, again;
    begin(&first, 77, 1, RATE);
    begin(&again, 77, 1, RATE);
    for (int i = 0; i < 100000; i++) {
        bool is_sampled = allocate(&first, mix[i % MIX]);
        assert_true(is_sampled == allocate(&again, mix[i % MIX]));
        if (is_sampled) sampled_rate(&first, mix[i % MIX]), sampled_rate(&again, mix[i % MIX]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_parts_of_a_mix),
        cmocka_unit_test(test_short_threads),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_forks),
        cmocka_unit_test(test_changing_rate),
        cmocka_unit_test(test_thinning),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_threads_together),
        cmocka_unit_test(test_large_blocks),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_same_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
