// SPDX-License-Identifier: Apache-2.0
// Looks at pages as the heap grows, in pauses that double, and at the end; but for little time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/watch/touched.h"

enum { MS = 1000000, MIB = 1 << 20, HEAP = 8 * MIB };

// Looks every millisecond at a heap of one size; each look takes `cost_ns`.
static int looks_within(uint64_t ms, uint64_t cost_ns, uint64_t *last_ms) {
    struct touched_looks looks = {0};
    int count = 0;
    for (uint64_t now = 1; now <= ms; now++) {
        if (!touched_is_due(&looks, HEAP, now * MS, false)) continue;
        touched_was_read(&looks, now * MS, now * MS + cost_ns);
        *last_ms = now;
        count++;
    }
    return count;
}

// Wherever the process ends, the last look came after half of the time, or a second before.
static void test_pauses_double(void **state) {
    (void)state;
    uint64_t last_ms = 0;
    assert_int_equal(looks_within(9, 0, &last_ms), 1);
    assert_int_equal(last_ms, 1);
    for (uint64_t ms = 40; ms < 9000; ms += 7) {
        assert_in_range(looks_within(ms, 0, &last_ms), 2, 20);
        assert_true(last_ms * 5 >= ms * 2 || ms - last_ms <= 1300);
    }
}

static void test_looks_take_a_twentieth(void **state) {
    (void)state;
    uint64_t last_ms = 0;
    assert_in_range(looks_within(10000, UINT64_C(50) * MS, &last_ms), 4, 10);
}

static void test_growth_is_looked_at(void **state) {
    (void)state;
    struct touched_looks looks = {0};
    assert_false(touched_is_due(&looks, MIB - 1, MS, true));
    assert_true(touched_is_due(&looks, HEAP, MS, false));
    touched_was_read(&looks, MS, MS);
    assert_false(touched_is_due(&looks, HEAP + HEAP / 8, 2 * MS, false));
    assert_true(touched_is_due(&looks, HEAP + HEAP / 2, 2 * MS, false));
}

// At the end, unless looks take so long that the process would wait noticeably.
static void test_last_look(void **state) {
    (void)state;
    struct touched_looks looks = {0};
    assert_true(touched_is_due(&looks, HEAP, MS, false));
    touched_was_read(&looks, MS, 3 * MS);
    assert_false(touched_is_due(&looks, HEAP, 4 * MS, false));
    assert_true(touched_is_due(&looks, HEAP, 4 * MS, true));
    touched_was_read(&looks, 4 * MS, UINT64_C(204) * MS);
    assert_false(touched_is_due(&looks, HEAP, UINT64_C(205) * MS, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_double),
        cmocka_unit_test(test_looks_take_a_twentieth),
        cmocka_unit_test(test_growth_is_looked_at),
        cmocka_unit_test(test_last_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
