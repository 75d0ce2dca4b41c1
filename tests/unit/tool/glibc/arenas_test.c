// SPDX-License-Identifier: Apache-2.0
// Arenas worked out by hand, in both layouts, and memory that only looks like them.
#include "tool/glibc/arenas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/glibc/chunks.h"

#define DATA UINT64_C(0x7f0000400000)
enum { WORD = 8, WORDS = 1024, FIRST = 20, SECOND = 400, NEW_BINS = 14, OLD_BINS = 13 };
enum { NEXT = ARENA_BIN_WORDS + 2, THREADS = NEXT + 2, SYSTEM = NEXT + 3 };  // from the first bin

static uint64_t words[WORDS];

static uint64_t address_of(size_t word) {
    return DATA + word * WORD;
}

static bool read_words(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    if (address < DATA || address - DATA > sizeof words || size > sizeof words - (address - DATA))
        return false;
    memcpy(bytes, (uint8_t *)words + (address - DATA), size);
    return true;
}

static const struct memory_reader memory = {.read = read_words};

static void make_arena(size_t at, size_t bins_at, size_t next) {
    for (size_t bin = 0; bin < ARENA_BINS; bin++)
        words[at + bins_at + 2 * bin] = words[at + bins_at + 2 * bin + 1] =
            address_of(at + bins_at + 2 * bin - 2);
    words[at + bins_at - 2] = address_of(at + bins_at - 2);  // top
    words[at + bins_at + NEXT] = address_of(next);
    words[at + bins_at + THREADS] = 1;
    words[at + bins_at + SYSTEM] = 132 << 10;
}

static bool find(struct arenas *arenas, unsigned broken_most) {
    *arenas = (struct arenas){.bins_offset = 0};
    return arenas_find(arenas, &memory, DATA, DATA + sizeof words, broken_most);
}

static int setup(void **state) {
    (void)state;
    memset(words, 0, sizeof words);
    return 0;
}

static void test_circle(void **state) {
    (void)state;
    struct arenas arenas;
    struct arena arena;
    make_arena(FIRST, NEW_BINS, SECOND);
    make_arena(SECOND, NEW_BINS, FIRST);
    assert_true(find(&arenas, 0));
    assert_int_equal(arenas.addresses.count, 2);
    assert_int_equal(arenas.addresses.items[0], address_of(FIRST));
    assert_int_equal(arenas.addresses.items[1], address_of(SECOND));
    assert_true(arenas_read(&arenas, &memory, address_of(SECOND), 0, &arena));
    assert_int_equal(arena.next, address_of(FIRST));
    assert_int_equal(arena.system_bytes, 132 << 10);
    assert_int_equal(arena.top, arena_bin_head(&arena, 0));
    assert_int_equal(arena.fastbins_address, address_of(SECOND + 2));
    arenas_free(&arenas);
}

static void test_old_layout(void **state) {
    (void)state;
    struct arenas arenas;
    make_arena(FIRST, OLD_BINS, FIRST);
    assert_true(find(&arenas, 0));
    assert_int_equal(arenas.addresses.count, 1);
    assert_int_equal(arenas.addresses.items[0], address_of(FIRST));
    arenas_free(&arenas);
}

// A chunk of a bin that does not lead back: the process was stopped in the middle, or it is no bin.
static void test_broken_bin(void **state) {
    (void)state;
    struct arenas arenas;
    make_arena(FIRST, NEW_BINS, FIRST);
    words[FIRST + NEW_BINS + 20] = words[FIRST + NEW_BINS + 21] = address_of(WORDS - 8);
    assert_false(find(&arenas, 0));
    arenas_free(&arenas);
    assert_true(find(&arenas, 1));
    arenas_free(&arenas);
}

// Of a heap with gaps of every size all bins have something, but for the last one, which is of no
// size.
static void test_full_bins(void **state) {
    (void)state;
    struct arenas arenas;
    const size_t chunk = WORDS - 8;
    make_arena(FIRST, NEW_BINS, FIRST);
    for (size_t bin = 0; bin + 1 < ARENA_BINS; bin++)
        words[FIRST + NEW_BINS + 2 * bin] = words[FIRST + NEW_BINS + 2 * bin + 1] =
            address_of(chunk);
    assert_false(find(&arenas, ARENA_BINS - 2));  // none of them leads back
    arenas_free(&arenas);
    assert_true(find(&arenas, ARENA_BINS - 1));
    assert_int_equal(arenas.addresses.items[0], address_of(FIRST));
    arenas_free(&arenas);
    words[FIRST + NEW_BINS + 2 * ARENA_BINS - 1] = address_of(chunk);
    assert_false(find(&arenas, ARENA_BINS));
    arenas_free(&arenas);
}

static void test_no_circle(void **state) {
    (void)state;
    struct arenas arenas;
    make_arena(FIRST, NEW_BINS, SECOND);
    assert_false(find(&arenas, 0));  // leads to something else
    arenas_free(&arenas);
    make_arena(SECOND, NEW_BINS, SECOND);  // leads to itself, not to the first
    assert_true(find(&arenas, 0));
    assert_int_equal(arenas.addresses.count, 1);
    assert_int_equal(arenas.addresses.items[0], address_of(SECOND));
    arenas_free(&arenas);
}

static void test_heaps(void **state) {
    (void)state;
    const uint64_t at = 2 * ARENA_HEAP_BYTES, end = at + ARENA_HEAP_BYTES;
    const struct arena_heap first = {at + 48, 0, 8 << 12, 9 << 12};
    const struct arena_heap other = {at - ARENA_HEAP_BYTES + 48, at - ARENA_HEAP_BYTES, 4096, 4096};
    assert_true(arena_heap_is_valid(&first, at, end));
    assert_true(arena_heap_is_valid(&other, at, end));
    assert_false(arena_heap_is_valid(&first, at, at + 4096));  // larger than its mapping
    assert_false(arena_heap_is_valid(&first, at + 4096, end));
    struct arena_heap bad = first;
    bad.arena = at + 8192;
    assert_false(arena_heap_is_valid(&bad, at, end));
    bad = first;
    bad.bytes = 10 << 12;  // more than is accessible
    assert_false(arena_heap_is_valid(&bad, at, end));
    bad = first;
    bad.previous = at - ARENA_HEAP_BYTES;  // the first has none before
    assert_false(arena_heap_is_valid(&bad, at, end));
}

static void test_mapped_chunks(void **state) {
    (void)state;
    for (uint64_t page = 4096; page <= 65536; page *= 4) {
        const uint64_t chunk[] = {0, page | CHUNK_HAS_MAPPING};
        const uint64_t used[] = {0, page | CHUNK_USED_BEFORE};
        const uint64_t behind_free[] = {32, page | CHUNK_HAS_MAPPING}, odd[] = {0, (page + 16) | 2};
        const uint64_t smaller[] = {0, page / 2 * 3 | CHUNK_HAS_MAPPING};
        assert_int_equal(chunk_mapped_bytes(chunk, page, page, 2 * page), page);
        assert_int_equal(chunk_mapped_bytes(chunk, page, 2 * page, 2 * page), 0);
        assert_int_equal(chunk_mapped_bytes(chunk, page, page, page - 1), 0);
        assert_int_equal(chunk_mapped_bytes(used, page, page, 2 * page), 0);
        assert_int_equal(chunk_mapped_bytes(behind_free, page, page, 2 * page), 0);
        assert_int_equal(chunk_mapped_bytes(odd, page, page, 2 * page), 0);
        assert_int_equal(chunk_mapped_bytes(smaller, page, page, 2 * page), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_circle, setup),
        cmocka_unit_test_setup(test_old_layout, setup),
        cmocka_unit_test_setup(test_broken_bin, setup),
        cmocka_unit_test_setup(test_full_bins, setup),
        cmocka_unit_test_setup(test_no_circle, setup),
        cmocka_unit_test(test_heaps),
        cmocka_unit_test(test_mapped_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
