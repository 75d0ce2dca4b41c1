// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/sys/sys.h"
#include "tests/unit/runtime/random.h"

enum { PIECES = 3000, LARGEST_BYTES = 40000, ALIGNMENT = 64 };

struct piece {
    uint8_t *start;
    size_t bytes;
};

static int piece_compare(const void *a, const void *b) {
    const struct piece *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void test_pieces_are_zeroed_aligned_and_apart(void **state) {
    (void)state;
    static struct piece pieces[PIECES];
    struct arena arena = {0};
    uint64_t seed = 1;
    for (int i = 0; i < PIECES; i++) {
        size_t bytes = random_chance(&seed, 90) ? random_below(&seed, 600) + 1
                                                : random_below(&seed, LARGEST_BYTES) + 1;
        uint8_t *start = arena_alloc(&arena, bytes);
        assert_non_null(start);
        assert_int_equal((uintptr_t)start % ALIGNMENT, 0);
        for (size_t k = 0; k < bytes; k++) assert_int_equal(start[k], 0);
        memset(start, 0xaa, bytes);
        pieces[i] = (struct piece){start, bytes};
    }
    qsort(pieces, PIECES, sizeof pieces[0], piece_compare);
    for (int i = 1; i < PIECES; i++)
        assert_true(pieces[i - 1].start + pieces[i - 1].bytes <= pieces[i].start);
}

// A short-lived thread must stay cheap, a busy one must not map per piece.
static void test_chunks_begin_small_and_double(void **state) {
    (void)state;
    struct arena arena = {0};
    uint64_t before = sys_own_bytes();
    arena_alloc(&arena, 1);
    assert_int_equal(sys_own_bytes() - before, 16 << 10);
    for (int i = 0; i < 256; i++) arena_alloc(&arena, 64);
    assert_int_equal(sys_own_bytes() - before, (16 << 10) + (32 << 10));
}

// A smaller chunk than a page would waste the rest of it.
static void test_first_chunk_is_a_whole_page(void **state) {
    (void)state;
    struct arena arena = {0};
    uint64_t before = sys_own_bytes();
    sys_page_known = 64 << 10;
    for (int i = 0; i < 1024; i++) arena_alloc(&arena, 64);
    assert_int_equal(sys_own_bytes() - before, 64 << 10);
    arena_alloc(&arena, 64);
    assert_int_equal(sys_own_bytes() - before, (64 << 10) + (128 << 10));
    sys_page_known = 0;
}

static void test_absurd_size_is_refused(void **state) {
    (void)state;
    struct arena arena = {0};
    assert_null(arena_alloc(&arena, (size_t)1 << 60));
    assert_non_null(arena_alloc(&arena, 64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(test_chunks_begin_small_and_double),
        cmocka_unit_test(test_first_chunk_is_a_whole_page),
        cmocka_unit_test(test_absurd_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
