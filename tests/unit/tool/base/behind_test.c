// SPDX-License-Identifier: Apache-2.0
// What comes out of a stream that another thread works on is what went in, in its order.
#include "tool/base/behind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct seen {
    uint32_t next;
    size_t bytes;
    bool is_wrong;
};

// Numbers of four bytes, each one more than the last; blocks may end within one.
static void see(void *context, const void *bytes, size_t size) {
    struct seen *seen = context;
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++, seen->bytes++) {
        unsigned shift = 8 * (seen->bytes % 4);
        seen->is_wrong |= at[i] != (unsigned char)(seen->next >> shift);
        seen->next += seen->bytes % 4 == 3;
    }
}

static void pass(uint32_t count) {
    struct seen seen = {0};
    struct behind behind;
    assert_true(behind_start(&behind, see, &seen));
    for (uint32_t i = 0; i < count; i++) behind_put(&behind, &i, sizeof i);
    behind_end(&behind);
    assert_int_equal(seen.bytes, count * sizeof count);
    assert_false(seen.is_wrong);
}

static void test_lengths(void **state) {
    (void)state;
    pass(0);
    pass(3);
    pass(100000);   // the caller alone
    pass(3000001);  // a thread, and a last block that is not full
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
