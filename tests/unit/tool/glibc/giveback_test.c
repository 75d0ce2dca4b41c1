// SPDX-License-Identifier: Apache-2.0
// Memory of an arena that goes back, worked out by hand, and malloc's parameters in both layouts,
// and in memory that only looks like them.
#include "tool/glibc/giveback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define START UINT64_C(0x7f0000400000)
enum { WORD = 8, PAGE = 4096, WORDS = 64 << 10, KIB = 1024, INT_BITS = 32 };

static uint64_t words[WORDS];

static bool read_words(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    if (address < START || address - START > sizeof words ||
        size > sizeof words - (address - START))
        return false;
    memcpy(bytes, (uint8_t *)words + (address - START), size);
    return true;
}

static const struct memory_reader memory = {.read = read_words};

// All of it is, but for what lies in the page at `context`.
static uint64_t resident_bytes(void *context, uint64_t start, uint64_t end) {
    const uint64_t *gone = context;
    uint64_t from = *gone > start ? *gone : start, until = *gone + PAGE < end ? *gone + PAGE : end;
    return end - start - (until > from ? until - from : 0);
}

static struct arena_free settle(struct free_chunk *chunks, size_t count, uint64_t top,
                                uint64_t top_bytes, uint64_t gone) {
    static const struct malloc_parameters usual = {
        MALLOC_THRESHOLD_USUAL, MALLOC_THRESHOLD_USUAL, MALLOC_THRESHOLD_USUAL, 0, false, 0};
    const struct resident_source resident = {resident_bytes, &gone, PAGE};
    struct arena_free arena = {.is_main = true, .top = top, .top_bytes = top_bytes};
    giveback_settle(&arena, chunks, count, &usual, &memory, &resident);
    return arena;
}

// A chunk gives back whole pages behind its first 48 bytes.
static void test_pages(void **state) {
    (void)state;
    struct free_chunk exact[] = {{START + PAGE - 48, 48 + 2 * PAGE}};
    assert_int_equal(settle(exact, 1, START, 0, 0).trim_bytes, 2 * PAGE);
    struct free_chunk late[] = {{START + PAGE - 32, 48 + 2 * PAGE}};
    assert_int_equal(settle(late, 1, START, 0, 0).trim_bytes, PAGE);
    struct free_chunk small[] = {{START + PAGE - 48, 47 + PAGE}};
    assert_int_equal(settle(small, 1, START, 0, 0).trim_bytes, 0);
    struct free_chunk gone[] = {{START + PAGE - 48, 48 + 2 * PAGE}};
    assert_int_equal(settle(gone, 1, START, 0, START + PAGE).trim_bytes, PAGE);
}

// Neighbours are one piece, in any order; chunks that overlap count once.
static void test_joined(void **state) {
    (void)state;
    const uint64_t at = START + PAGE - 48;
    struct free_chunk halves[] = {{at + PAGE, 48 + PAGE}, {at, PAGE}};
    struct arena_free arena = settle(halves, 2, START, 0, 0);
    assert_int_equal(arena.trim_bytes, 2 * PAGE);
    assert_int_equal(arena.chunk_count, 2);
    struct free_chunk twice[] = {{at, 48 + 2 * PAGE}, {at + PAGE, PAGE}};
    assert_int_equal(settle(twice, 2, START, 0, 0).chunk_bytes, 48 + 2 * PAGE);
}

// The end goes back but for 33 bytes; a free chunk before it is a part of it.
static void test_end(void **state) {
    (void)state;
    const uint64_t top = START + 16 * PAGE;
    assert_int_equal(settle(NULL, 0, top, 4 * PAGE, 0).trim_bytes, 3 * PAGE);
    struct free_chunk before[] = {{top - PAGE / 2, PAGE / 2}};
    assert_int_equal(settle(before, 1, top, 4 * PAGE, 0).trim_bytes, 4 * PAGE);
}

// One block before the end keeps what is free below it; two do not count as one.
static void test_pin(void **state) {
    (void)state;
    const uint64_t start = START + 2 * PAGE, free_bytes = 300 * KIB, block = start + free_bytes;
    struct free_chunk below[] = {{start, free_bytes}};
    words[(block - START) / WORD + 1] = 64;
    struct arena_free arena = settle(below, 1, block + 64, PAGE, 0);
    assert_int_equal(arena.pin.address, block + CHUNK_HEADER_BYTES);
    assert_int_equal(arena.pin.resident_bytes,
                     (free_bytes + 64 + PAGE - 128 * KIB - 33) / PAGE * PAGE);
    assert_int_equal(settle(below, 1, block + 96, PAGE, 0).pin.address, 0);
    struct free_chunk little[] = {{block - 100 * KIB, 100 * KIB}};
    assert_int_equal(settle(little, 1, block + 64, PAGE, 0).pin.address, 0);
}

// Free pieces of the usual threshold, also of several chunks, and the end beyond as much.
static void test_pieces(void **state) {
    (void)state;
    const uint64_t large = MALLOC_THRESHOLD_USUAL;
    struct free_chunk chunks[] = {{START, large - 16}, {START + 2 * large, large}};
    assert_int_equal(settle(chunks, 2, START + 4 * large, 0, 0).piece_bytes, large);
    struct free_chunk joined[] = {{START, large / 2}, {START + large / 2, large / 2}};
    assert_int_equal(settle(joined, 2, START + 4 * large, 0, 0).piece_bytes, large);
    assert_int_equal(settle(joined, 0, START, large, 0).piece_bytes, 0);
    assert_int_equal(settle(joined, 0, START, large + PAGE, 0).piece_bytes, PAGE);
}

static bool find(struct malloc_parameters *parameters) {
    return malloc_parameters_find(&memory, START, START + 100 * WORD, parameters);
}

static void test_parameters(void **state) {
    (void)state;
    static const struct { unsigned first_int, mapped_word; } layouts[] = {{15, 10}, {10, 7}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct malloc_parameters found;
        memset(words, 0, sizeof words);
        uint64_t *at = words + 20;
        memcpy(at, (uint64_t[]){40 << 20, 128 * KIB, 20 << 20, 8}, 4 * sizeof *at);
        int *ints = (int *)at + layouts[i].first_int;
        ints[1] = 65536;
        ints[2] = 3;
        at[layouts[i].mapped_word + 1] = 60 << 20;
        assert_true(find(&found));
        assert_int_equal(found.mmap_threshold, 20 << 20);
        assert_int_equal(found.trim_threshold, 40 << 20);
        assert_false(found.are_fixed);
        ints[3] = 1;
        at[0] = 1 << 20;
        assert_true(find(&found));
        assert_true(found.are_fixed);
        ints[3] = 0;
        assert_false(find(&found));  // a threshold that moves is half of the other one
        at[0] = 40 << 20;
        ints[0] = 1;
        assert_false(find(&found));  // a mapping of no bytes
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),      cmocka_unit_test(test_joined),
        cmocka_unit_test(test_end),        cmocka_unit_test(test_pin),
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
