// SPDX-License-Identifier: Apache-2.0
// Arenas: what is live of them, where some were not seen when they were made, and in great numbers.
#include "runtime/api/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/stack/scope.h"
#include "tests/unit/runtime/stack/recording.h"

enum { SCOPES = 16, ROOT = 0x1000, FIRST = 0x2000, SECOND = 0x3000, BLOCKS = 0x100000 };

static uint32_t heap;

static struct arenas *start(void) {
    recording_start(CAIRN_CELL_BLOCK, 64);
    assert_non_null(region_take(&modules.strings, 1));  // 0 is no text
    scopes.entries = recording_region(12, SCOPES * sizeof(struct cairn_scope));
    scopes.table = NULL;
    heap = scope_of_name(CAIRN_SCOPE_POOL, 0, "heap");
    assert_int_not_equal(heap, 0);
    struct arenas *arenas = arenas_make(heap);
    assert_non_null(arenas);
    return arenas;
}

static uint64_t live_bytes(uint32_t scope) {
    return scope_at(scope)->allocated_bytes - scope_at(scope)->freed_bytes;
}

static const void *block(uintptr_t number) {
    const uintptr_t step = 16;
    return (const void *)(BLOCKS + number * step);
}

static void test_parent_known_by_a_block(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, ROOT, 0);
    arena_add(arenas, ROOT, block(1), 10);
    arena_clear(arenas, FIRST, true);
    arena_open(arenas, SECOND, ROOT, 0);
    arena_add(arenas, SECOND, block(2), 200);
    assert_int_equal(live_bytes(heap), 210);
    arena_clear(arenas, ROOT, false);
    assert_int_equal(live_bytes(heap), 0);
}

static void test_parent_known_by_a_child(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, ROOT, 0);
    arena_open(arenas, SECOND, FIRST, 0);
    arena_add(arenas, SECOND, block(1), 100);
    arena_clear(arenas, ROOT, true);
    assert_int_equal(live_bytes(heap), 0);
    assert_int_equal(scope_at(heap)->entries, scope_at(heap)->ended);
}

static void test_moved_to_an_unknown_parent(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, 0, 0);
    arena_add(arenas, FIRST, block(1), 100);
    arena_move(arenas, FIRST, ROOT);
    arena_clear(arenas, ROOT, false);
    assert_int_equal(live_bytes(heap), 0);
}

// Parents in a ring end nothing but themselves, and the search for children ends.
static void test_ring(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, SECOND, 0);
    arena_open(arenas, SECOND, FIRST, 0);
    arena_add(arenas, SECOND, block(1), 100);
    arena_clear(arenas, SECOND, true);
    assert_int_equal(live_bytes(heap), 0);
}

static void test_many(void **state) {
    (void)state;
    const uintptr_t arenas_most = 1000, each = 20;
    struct arenas *arenas = start();
    size_t bytes;
    uintptr_t handle;
    arena_open(arenas, ROOT, 0, 0);
    for (uintptr_t i = 0; i < arenas_most; i++) {
        arena_open(arenas, SECOND + i, i % 2 ? ROOT : 0, 0);
        for (uintptr_t k = 0; k < each; k++) arena_add(arenas, SECOND + i, block(i * each + k), k);
    }
    assert_int_equal(live_bytes(heap), arenas_most * each * (each - 1) / 2);
    assert_true(arena_take(arenas, block(3), &bytes, &handle));
    assert_int_equal(bytes, 3);
    assert_int_equal(handle, SECOND);
    assert_false(arena_take(arenas, block(3), &bytes, &handle));
    arena_clear(arenas, ROOT, true);
    assert_int_equal(live_bytes(heap), arenas_most / 2 * each * (each - 1) / 2 - 3);
    assert_false(arena_take(arenas, block(each + 1), &bytes, &handle));  // of one that is gone
    for (uintptr_t i = 0; i < arenas_most; i += 2) arena_clear(arenas, SECOND + i, true);
    assert_int_equal(live_bytes(heap), 0);
    assert_int_equal(scope_at(heap)->ended, arenas_most + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parent_known_by_a_block),
        cmocka_unit_test(test_parent_known_by_a_child),
        cmocka_unit_test(test_moved_to_an_unknown_parent),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
