// SPDX-License-Identifier: Apache-2.0
// Tables of jemalloc made by hand: one slab, one large block that lies across two leaves, free
// pages; and what contradicts itself. The same in the forms of another version, of other sizes, and
// of wider addresses.
#include "tool/jemalloc/extents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tool/damaged_heap.h"
#include "tool/jemalloc/heap.h"

enum {
    LEVEL = 1 << 18,
    RECORDS = 8,
    RECORD_WORDS = 16,
    GIB_SHIFT = 30,
    PAGE_SHIFT = 12,
    BEFORE = LEVEL
};
#define DATA UINT64_C(0x7f0000000000)
#define LEAVES UINT64_C(0x7e0000000000)
#define RECORDS_AT UINT64_C(0x7d0000000000)
#define HEAP UINT64_C(0x7c003ffff000)  // the last page of a leaf
enum { LEAF_COUNT = 2 };

static struct {
    uint64_t data[BEFORE + LEVEL];  // the root lies behind other words
    uint64_t leaves[LEAF_COUNT][LEVEL];
    uint64_t records[RECORDS][RECORD_WORDS];
} * made;

static bool copy(uint64_t start, const void *from, size_t there, uint64_t address, void *bytes,
                 size_t size) {
    if (address < start || address - start > there || size > there - (address - start))
        return false;
    memcpy(bytes, (const uint8_t *)from + (address - start), size);
    return true;
}

static bool read_made(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    return copy(DATA, made->data, sizeof made->data, address, bytes, size) ||
           copy(LEAVES, made->leaves, sizeof made->leaves, address, bytes, size) ||
           copy(RECORDS_AT, made->records, sizeof made->records, address, bytes, size);
}
static const struct memory_reader memory = {.read = read_made};

struct extent_wish {
    uint64_t address, bytes;
    unsigned state, size_class, free_count;
    bool is_slab;
    uint64_t free;
};

static uint64_t *word_of(uint64_t address) {
    const uint64_t top = address >> GIB_SHIFT, first = HEAP >> GIB_SHIFT;
    return &made->leaves[top - first][address >> PAGE_SHIFT & (LEVEL - 1)];
}

static void make_extent(size_t number, const struct extent_wish *wish) {
    uint64_t *record = made->records[number];
    const uint64_t at = RECORDS_AT + number * RECORD_WORDS * sizeof(uint64_t),
                   page = 1 << PAGE_SHIFT;
    const uint64_t start = wish->address & ~(page - 1);
    record[0] = (uint64_t)wish->is_slab << 12 | (uint64_t)wish->state << 17 |
                (uint64_t)wish->size_class << 20 | (uint64_t)wish->free_count << 28;
    record[1] = wish->address;
    record[2] = wish->bytes | 5;  // a serial number below
    record[8] = wish->free;
    const uint64_t word = (uint64_t)wish->size_class << 48 | at | wish->state << 2 | wish->is_slab;
    *word_of(start) = word;
    for (uint64_t i = page; wish->is_slab && i < wish->bytes; i += page) *word_of(start + i) = word;
    // a class from before stays in the last word of what is no slab
    if (!wish->is_slab && wish->bytes > page)
        *word_of(start + wish->bytes - page) = (at | wish->state << 2) + (UINT64_C(7) << 48);
}

static int setup(void **state) {
    (void)state;
    made = calloc(1, sizeof *made);
    made->data[3] = LEAVES + 64;  // leads to a leaf, but from the wrong place
    // as the caches of threads: leads to a leaf from a place where there could be a root, but for
    // what else is there
    enum { NO_ROOT = 50 };
    made->data[NO_ROOT + (HEAP >> GIB_SHIFT)] = LEAVES;
    made->data[NO_ROOT + 10] = 12345;
    for (size_t i = 0; i < LEAF_COUNT; i++)
        made->data[BEFORE + (HEAP >> GIB_SHIFT) + i] = LEAVES + i * sizeof made->leaves[0];
    make_extent(0, &(struct extent_wish){.address = HEAP - (4 << PAGE_SHIFT),
                                         .bytes = 1 << PAGE_SHIFT,
                                         .size_class = 24,  // 2 KiB
                                         .is_slab = true,
                                         .free_count = 1,
                                         .free = 0xfffe});
    make_extent(
        1, &(struct extent_wish){.address = HEAP + 64, .bytes = 5 << PAGE_SHIFT, .size_class = 36});
    make_extent(2, &(struct extent_wish){
                       .address = HEAP + (9 << PAGE_SHIFT), .bytes = 2 << PAGE_SHIFT, .state = 1});
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(made);
    return 0;
}

static enum jemalloc_finding read_all(struct jemalloc_extents *extents) {
    struct jemalloc_place place = {0};
    assert_true(spans_add(&place.data, DATA, DATA + sizeof made->data));
    assert_true(jemalloc_place_add_memory(&place, HEAP, HEAP + (2 << PAGE_SHIFT)));
    jemalloc_place_settle(&place);
    enum jemalloc_finding finding = jemalloc_extents_read(&memory, &place, extents);
    assert_int_equal(jemalloc_find_root(&memory, &place),
                     finding == JEMALLOC_FOUND ? DATA + BEFORE * sizeof(uint64_t) : 0);
    jemalloc_place_free(&place);
    return finding;
}

static void test_sizes_are_those_of_jemalloc(void **state) {
    (void)state;
    static const uint64_t first[] = {8,   16,  32,  48,  64,  80,  96,  112, 128, 160, 192,
                                     224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
    static const uint64_t by_8[] = {8,  16, 24,  32,  40,  48,  56,  64,
                                    80, 96, 112, 128, 160, 192, 224, 256};
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
        assert_int_equal(jemalloc_class_bytes(JEMALLOC_QUANTUM_16, i), first[i]);
    for (unsigned i = 0; i < sizeof by_8 / sizeof *by_8; i++)
        assert_int_equal(jemalloc_class_bytes(JEMALLOC_QUANTUM_8, i), by_8[i]);
    for (enum jemalloc_quantum one = JEMALLOC_QUANTUM_8; one <= JEMALLOC_QUANTUM_16; one++) {
        assert_int_equal(jemalloc_class_bytes(one, jemalloc_small_classes(one) - 1), 14336);
        assert_int_equal(jemalloc_class_bytes(one, jemalloc_small_classes(one)), 16384);
    }
    assert_true(jemalloc_class_bytes(JEMALLOC_QUANTUM_16, JEMALLOC_CLASSES - 1) == UINT64_C(7)
                                                                                       << 60);
}

static void test_extents_are_read(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.items.count, 3);
    assert_int_equal(extents.torn_count, 0);
    assert_true(extents.items.items[0].is_slab);
    assert_int_equal(extents.items.items[0].free[0], 0xfffe);
    assert_true(extents.items.items[1].address == HEAP + 64);
    assert_int_equal(extents.items.items[1].bytes, 5 << PAGE_SHIFT);
    assert_int_equal(extents.items.items[2].state, JEMALLOC_DIRTY);
    assert_true(spans_have(&extents.tables, RECORDS_AT));
    assert_true(spans_have(&extents.tables, LEAVES + sizeof made->leaves[0]));
    jemalloc_extents_free(&extents);
}

static void test_what_is_changed_meanwhile_is_counted(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    made->records[0][8] = 0xffff;  // two free regions, of which the record counts one
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.torn_count, 1);
    jemalloc_extents_free(&extents);
}

// An extent that was joined to one of the leaf before leaves a class without a record.
static void test_a_leaf_may_begin_with_what_was_joined(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    made->leaves[1][0] = UINT64_C(232) << 48;
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.items.count, 3);
    assert_int_equal(extents.torn_count, 0);
    jemalloc_extents_free(&extents);
}

// A slab that is handed out at the moment has a class in its record that its words do not have yet,
// and its pages come first in their leaf.
static void test_a_leaf_may_begin_with_what_is_changed(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    made->records[0][0] ^= UINT64_C(1) << 20;
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.items.count, 2);
    assert_int_equal(extents.torn_count, 1);
    jemalloc_extents_free(&extents);
}

// Turns what was made into records and words of 5.2: no state in words, fields elsewhere.
static void make_older(void) {
    for (size_t i = 0; i < 3; i++) {
        const uint64_t bits = made->records[i][0], low = bits & 0x1fff;
        made->records[i][0] = low | (bits >> 17 & 7) << 16 | (bits >> 20 & 0xff) << 18 |
                              (bits >> 28 & 0x3ff) << 26 | UINT64_C(77) << 43;
    }
    for (size_t i = 0; i < LEAF_COUNT; i++)
        for (size_t k = 0; k < LEVEL; k++) made->leaves[i][k] &= ~UINT64_C(0x1e);
}

static void test_an_older_version_is_read(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    make_older();
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.version, JEMALLOC_5_2);
    assert_int_equal(extents.items.count, 3);
    assert_int_equal(extents.torn_count, 0);
    assert_int_equal(extents.items.items[2].state, JEMALLOC_DIRTY);
    jemalloc_extents_free(&extents);
}

// As redis builds its own: class 27 is of 2 KiB there, 36 of 10 KiB and 39 of 16.
static void test_sizes_in_steps_of_8_are_told_by_slabs(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    struct extent_wish wish = {.address = HEAP - (4 << PAGE_SHIFT),
                               .bytes = 1 << PAGE_SHIFT,
                               .size_class = 27,
                               .is_slab = true,
                               .free_count = 1,
                               .free = 0xfffe};
    make_extent(0, &wish);
    wish = (struct extent_wish){.address = HEAP + 64, .bytes = 5 << PAGE_SHIFT, .size_class = 39};
    make_extent(1, &wish);
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.quantum, JEMALLOC_QUANTUM_8);
    assert_int_equal(extents.torn_count, 0);
    assert_int_equal(jemalloc_block_bytes(&extents, &extents.items.items[0]), 2048);
    assert_int_equal(jemalloc_block_bytes(&extents, &extents.items.items[1]), 16384);
    jemalloc_extents_free(&extents);
}

// Since 5.3.1 a large block has as many pages as it needs, and the class above.
static void test_large_blocks_may_have_sizes_between_classes(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    struct extent_wish wish = {
        .address = HEAP + 64, .bytes = 10 << PAGE_SHIFT, .size_class = 41};  // 40 KiB at most
    make_extent(1, &wish);
    wish = (struct extent_wish){
        .address = HEAP + (10 << PAGE_SHIFT), .bytes = 2 << PAGE_SHIFT, .state = 1};
    make_extent(2, &wish);
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.torn_count, 0);
    assert_int_equal(jemalloc_block_bytes(&extents, &extents.items.items[1]), 9 << PAGE_SHIFT);
    jemalloc_extents_free(&extents);
}

// The table of a machine with addresses of 57 bits: three levels, and pairs in leaves of 128 MiB.
enum { WIDE_LEVEL = 1 << 15, WIDE_LEAF_SHIFT = 27, WIDE_NODE_SHIFT = 42, METADATA_SHIFT = 5 };

static void make_wider(void) {
    uint64_t *root = &made->data[BEFORE], *node = made->leaves[0];
    uint64_t *leaves = &made->leaves[0][WIDE_LEVEL];
    uint64_t *old = calloc(2, sizeof made->leaves[0]);
    const uint64_t first_page = HEAP >> GIB_SHIFT << (GIB_SHIFT - PAGE_SHIFT);
    assert_non_null(old);
    memcpy(old, made->leaves, 2 * sizeof made->leaves[0]);
    memset(made->leaves, 0, 2 * sizeof made->leaves[0]);
    memset(made->data, 0, sizeof made->data);
    root[HEAP >> WIDE_NODE_SHIFT] = LEAVES;
    for (uint64_t i = 0; i < 2 * LEVEL; i++) {
        const uint64_t address = (first_page + i) << PAGE_SHIFT, word = old[i];
        const uint64_t leaf = (address >> WIDE_LEAF_SHIFT) - (HEAP >> WIDE_LEAF_SHIFT);
        if (!word) continue;
        assert_in_range(leaf, 0, 1);
        uint64_t *pair =
            &leaves[leaf * 2 * WIDE_LEVEL + (address >> PAGE_SHIFT & (WIDE_LEVEL - 1)) * 2];
        pair[0] = word & ((UINT64_C(1) << 48) - 128);
        pair[1] = (word & 0x1f) | word >> 48 << METADATA_SHIFT;
        node[address >> WIDE_LEAF_SHIFT & (WIDE_LEVEL - 1)] =
            LEAVES +
            (uint64_t)((uint8_t *)&leaves[leaf * 2 * WIDE_LEVEL] - (uint8_t *)made->leaves);
    }
    free(old);
}

static void test_a_table_of_wider_addresses_is_read(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    make_wider();
    assert_int_equal(read_all(&extents), JEMALLOC_FOUND);
    assert_int_equal(extents.items.count, 3);
    assert_int_equal(extents.torn_count, 0);
    assert_int_equal(extents.items.items[0].free[0], 0xfffe);
    assert_true(extents.items.items[1].address == HEAP + 64);
    assert_true(spans_have(&extents.tables, LEAVES));
    assert_true(spans_have(&extents.tables, LEAVES + WIDE_LEVEL * sizeof(uint64_t)));
    jemalloc_extents_free(&extents);
    made->data[BEFORE + 40] = LEAVES;  // beyond what addresses of programs have
    assert_int_equal(read_all(&extents), JEMALLOC_NONE);
}

static void test_other_layouts_are_none(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    for (size_t i = 0; i < 3; i++) made->records[i][0] |= UINT64_C(1) << 50;
    assert_int_equal(read_all(&extents), JEMALLOC_NONE);
}

static void test_classes_that_differ_are_none(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    for (size_t i = 0; i < 2; i++) made->records[i][0] ^= UINT64_C(1) << 20;
    made->records[2][1] = 0;
    assert_int_equal(read_all(&extents), JEMALLOC_NONE);
}

static void test_empty_data_are_none(void **state) {
    (void)state;
    struct jemalloc_extents extents;
    memset(made, 0, sizeof *made);
    assert_int_equal(read_all(&extents), JEMALLOC_NONE);
}

static enum jemalloc_finding read_heap(struct glibc_heap *heap) {
    const struct memory_view view = {.reader = memory};
    struct jemalloc_place place = {0};
    const struct jemalloc_source source = {.view = &view, .place = &place};
    *heap = (struct glibc_heap){0};
    assert_true(spans_add(&place.data, DATA, DATA + sizeof made->data));
    assert_true(jemalloc_place_add_memory(&place, HEAP, HEAP + (2 << PAGE_SHIFT)));
    jemalloc_place_settle(&place);
    enum jemalloc_finding finding = jemalloc_heap_add(&source, heap);
    jemalloc_place_free(&place);
    return finding;
}

static void test_what_is_beside_blocks(void **state) {
    (void)state;
    struct glibc_heap heap;
    assert_int_equal(read_heap(&heap), JEMALLOC_FOUND);
    assert_int_equal(heap.other.classes.count, 2);
    const struct other_class *small = &heap.other.classes.items[0];
    assert_int_equal(small->size, 2048);
    assert_int_equal(small->page_bytes, 1 << PAGE_SHIFT);
    assert_int_equal(small->used + small->cached, 1);
    assert_int_equal(small->free, 1);
    assert_int_equal(heap.other.emptied.items.count, 0);
    assert_int_equal(heap.other.asked.items.count, 1);
    assert_true(heap.other.asked.items.items[0].start == HEAP + (9 << PAGE_SHIFT));
    glibc_heap_free(&heap);
    made->records[0][0] += UINT64_C(1) << 28;  // the other region is free as well
    made->records[0][8] = 0xffff;
    assert_int_equal(read_heap(&heap), JEMALLOC_FOUND);
    assert_true(spans_have(&heap.other.emptied, HEAP - (4 << PAGE_SHIFT)));
    glibc_heap_free(&heap);
}

// A word of the records, or one that leads to them or to a leaf.
static void damage(uint64_t *chance) {
    uint64_t *places[] = {
        &made->records[random_below(chance, 3)][random_below(chance, RECORD_WORDS)],
        word_of(HEAP - (random_below(chance, 8) << PAGE_SHIFT)),
        &made->data[BEFORE + (HEAP >> GIB_SHIFT) + random_below(chance, LEAF_COUNT)]};
    uint64_t *word = places[random_below(chance, sizeof places / sizeof *places)];
    const uint64_t flipped = *word ^ UINT64_C(1) << random_below(chance, 64);
    *word = damaged_word(*word, chance, &flipped, 1);
}

static void read_damaged(struct glibc_heap *heap) {
    read_heap(heap);
}

static void test_damage_ends(void **state) {
    damaged_heap_ends(state,
                      &(struct damaged_heap){setup, teardown, damage, read_damaged, .rounds = 50});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_sizes_are_those_of_jemalloc),
        TEST(test_extents_are_read),
        TEST(test_what_is_changed_meanwhile_is_counted),
        TEST(test_a_leaf_may_begin_with_what_was_joined),
        TEST(test_a_leaf_may_begin_with_what_is_changed),
        TEST(test_an_older_version_is_read),
        TEST(test_sizes_in_steps_of_8_are_told_by_slabs),
        TEST(test_large_blocks_may_have_sizes_between_classes),
        TEST(test_a_table_of_wider_addresses_is_read),
        TEST(test_other_layouts_are_none),
        TEST(test_classes_that_differ_are_none),
        TEST(test_empty_data_are_none),
        TEST(test_what_is_beside_blocks),
        cmocka_unit_test(test_damage_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
