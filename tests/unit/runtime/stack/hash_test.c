// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { STACKS = 1000000, DEPTH_MAX = 24, POOL = 512, SAMPLES = 2000, ADDRESS_BITS = 48 };

static const struct stack_hash seeds = {0x243F6A8885A308D3u, 0x13198A2E03707344u};

static struct stack_hash hash_all(const uint64_t *frames, int count) {
    struct stack_hash hash = hash_begin(seeds, HASH_STACK);
    for (int i = 0; i < count; i++) hash = hash_with(hash, seeds, frames[i]);
    return hash;
}

static bool is_equal(struct stack_hash a, struct stack_hash b) {
    return a.table == b.table && a.check == b.check;
}

static void test_kinds_do_not_meet(void **state) {
    (void)state;
    for (uint64_t frame = 0; frame < SAMPLES; frame++) {
        struct stack_hash other = hash_with(hash_begin(seeds, HASH_FOREIGN), seeds, frame);
        assert_false(is_equal(hash_all(&frame, 1), other));
    }
}

static void test_order_and_depth_matter(void **state) {
    (void)state;
    const uint64_t a = 0x555555551234, b = 0x555555555678;
    const uint64_t ab[] = {a, b}, ba[] = {b, a}, recursion[] = {a, a, a, a, a, a, a, a};
    assert_false(is_equal(hash_all(ab, 2), hash_all(ba, 2)));
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++)
            assert_true(hash_all(recursion, i).table != hash_all(recursion, k).table);
}

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint64_t count_equal(uint64_t *values, size_t count) {
    uint64_t equal = 0;
    qsort(values, count, sizeof *values, compare);
    for (size_t i = 1; i < count; i++) equal += values[i] == values[i - 1];
    return equal;
}

// The check word of each stack alone, 32 bits, collides no more often than chance has it.
static void check_collisions(uint64_t *tables, uint64_t *checks) {
    const double values = 4294967296.0, pairs = (double)STACKS * (STACKS - 1) / 2;
    assert_int_equal(count_equal(tables, STACKS), 0);
    double expected = pairs / values, equal = (double)count_equal(checks, STACKS);
    assert_true(equal < expected * 1.6);
}

// Stacks as programs have them: few addresses, close to each other, in many orders.
static void test_no_two_stacks_share_a_hash(void **state) {
    (void)state;
    uint64_t pool[POOL], frames[DEPTH_MAX], seed = 2;
    uint64_t *tables = malloc(STACKS * sizeof *tables), *checks = malloc(STACKS * sizeof *checks);
    for (int i = 0; i < POOL; i++) pool[i] = 0x555555550000 + random_below(&seed, 1 << 20);
    for (int i = 0; i < STACKS; i++) {
        int count = 8 + (int)random_below(&seed, DEPTH_MAX - 8 + 1);
        for (int k = 0; k < count; k++) frames[k] = pool[random_below(&seed, POOL)];
        struct stack_hash hash = hash_all(frames, count);
        tables[i] = hash.table;
        checks[i] = hash_check(hash);
    }
    check_collisions(tables, checks);
    free(tables);
    free(checks);
}

// All pairs of a thousand neighbouring addresses: the worst case for a weak mixture.
static void test_neighbouring_addresses(void **state) {
    (void)state;
    const int side = 1000;
    uint64_t *tables = malloc(STACKS * sizeof *tables), *checks = malloc(STACKS * sizeof *checks);
    for (int i = 0; i < STACKS; i++) {
        uint64_t frames[] = {0x7f0000000000u + (uint64_t)(i / side),
                             0x7f0000000000u + (uint64_t)(i % side)};
        struct stack_hash hash = hash_all(frames, 2);
        tables[i] = hash.table;
        checks[i] = hash_check(hash);
    }
    check_collisions(tables, checks);
    free(tables);
    free(checks);
}

// Share of the bits of the table's hash that change with bit `bit` of frame `place` of `count`.
static double flip_share(int place, int count, unsigned bit) {
    uint64_t frames[DEPTH_MAX], seed = 3;
    uint64_t flipped = 0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        for (int i = 0; i < count; i++) frames[i] = random_next(&seed) >> 17;
        uint64_t before = hash_all(frames, count).table;
        frames[place] ^= (uint64_t)1 << bit;
        flipped += (unsigned)__builtin_popcountll(before ^ hash_all(frames, count).table);
    }
    return (double)flipped / SAMPLES / 64;
}

static void test_each_bit_changes_half_of_the_hash(void **state) {
    (void)state;
    for (unsigned bit = 0; bit < ADDRESS_BITS; bit++) {
        for (int place = 0; place < 4; place++) {
            double share = flip_share(place, 4, bit);
            if (share < 0.45 || share > 0.55)
                print_message("bit %u of frame %d: %.3f\n", bit, place, share);
            assert_true(share > 0.45 && share < 0.55);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_do_not_meet),
        cmocka_unit_test(test_order_and_depth_matter),
        cmocka_unit_test(test_no_two_stacks_share_a_hash),
        cmocka_unit_test(test_neighbouring_addresses),
        cmocka_unit_test(test_each_bit_changes_half_of_the_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
