// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

// The published generator's first numbers for the state 1, 2, 3, 4.
static void test_known_numbers(void **state) {
    (void)state;
    static const uint64_t known[] = {11520, 0, 1509978240, 1215971899390074240u};
    struct prng chance = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(prng_next(&chance) == known[i]);
}

static bool is_same(struct prng a, struct prng b) {
    for (int i = 0; i < 8; i++)
        if (prng_next(&a) != prng_next(&b)) return false;
    return true;
}

static void test_streams(void **state) {
    (void)state;
    struct prng first, again, other_number, other_seed, child, second_child;
    prng_start(&first, 7, 1);
    prng_start(&again, 7, 1);
    prng_start(&other_number, 7, 2);
    prng_start(&other_seed, 8, 1);
    prng_start(&child, prng_seed_of_child(7, 0), 1);
    prng_start(&second_child, prng_seed_of_child(7, 1), 1);
    assert_true(is_same(first, again));
    assert_false(is_same(first, other_number));
    assert_false(is_same(first, other_seed));
    assert_false(is_same(first, child));
    assert_false(is_same(child, second_child));
}

static void test_share(void **state) {
    (void)state;
    enum { TRIES = 1000000, PARTS = 10 };
    struct prng chance;
    unsigned counts[PARTS] = {0};
    prng_start(&chance, 3, 3);
    for (int i = 0; i < TRIES; i++) {
        double share = prng_share(&chance);
        assert_true(share > 0 && share <= 1);
        counts[share < 1 ? (int)(share * PARTS) : PARTS - 1]++;
    }
    // five standard deviations: sqrt(10^6 * 0.1 * 0.9) = 300
    for (int i = 0; i < PARTS; i++) assert_in_range(counts[i], 98500, 101500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
