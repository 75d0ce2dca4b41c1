// SPDX-License-Identifier: Apache-2.0
// Who is charged with which resident pages, on maps that were made up.
#include "tool/model/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PAGE = RESIDENCY_PAGE_BYTES, OWNERS = 4 };

static struct residency residency;

struct list {
    const struct residency_block *next;
    size_t left;
};

static bool next_of(void *context, struct residency_block *block) {
    struct list *list = context;
    if (!list->left) return false;
    list->left--;
    *block = *list->next++;
    return true;
}

static void build(const struct residency_range *ranges, size_t range_count,
                  const struct residency_block *items, size_t block_count) {
    struct list list = {items, block_count};
    const struct residency_blocks blocks = {next_of, &list};
    assert_true(residency_build(&residency, ranges, range_count, &blocks, OWNERS, NULL));
    assert_int_equal(list.left, 0);
    uint64_t kept = 0;
    for (size_t i = 0; i < residency.owner_count; i++) kept += residency.owners[i].kept_bytes;
    assert_int_equal(kept, residency.kept_bytes);
}

static void check_owner(uint32_t owner, uint64_t blocks, uint64_t live, uint64_t kept,
                        uint64_t alone) {
    assert_int_equal(residency.owners[owner].blocks, blocks);
    assert_int_equal(residency.owners[owner].live_bytes, live);
    assert_int_equal(residency.owners[owner].kept_bytes, kept);
    assert_int_equal(residency.owners[owner].alone_bytes, alone);
}

static void test_alone(void **state) {
    (void)state;
    const struct residency_range range = {0x10000, 0x10000 + 4 * PAGE, NULL};
    // 64 bytes on each of three pages; the fourth is empty
    struct residency_block blocks[] = {
        {0x10010, 64, 1, 1}, {0x10000 + PAGE, 64, 1, 1}, {0x10000 + 3 * PAGE - 64, 64, 1, 1}};
    build(&range, 1, blocks, 3);
    check_owner(1, 3, 192, 3 * PAGE, 3 * PAGE);
    check_owner(0, 0, 0, 0, 0);
    assert_int_equal(residency.resident_bytes, 4 * PAGE);
    assert_int_equal(residency.kept_bytes, 3 * PAGE);
    assert_int_equal(residency.live_bytes, 192);
    assert_int_equal(residency.pages.items[1], 64);
    assert_int_equal(residency.pages.items[3], 0);
    residency_free(&residency);
}

static void test_shared(void **state) {
    (void)state;
    const struct residency_range range = {0, 2 * PAGE, NULL};
    // the first page is shared 1 to 3, the second belongs to owner 2, whose block begins before it
    struct residency_block blocks[] = {{0, 100, 0, 1}, {1000, 200, 2, 1}, {PAGE - 100, 1100, 2, 1}};
    build(&range, 1, blocks, 3);
    check_owner(0, 1, 100, PAGE / 4, 0);
    check_owner(2, 2, 1300, PAGE / 4 * 3 + PAGE, PAGE);
    residency_free(&residency);
}

// Thirds of a page are no whole numbers: nothing is lost.
static void test_rounding(void **state) {
    (void)state;
    const struct residency_range range = {0, PAGE, NULL};
    struct residency_block blocks[] = {{0, 8, 0, 1}, {16, 8, 1, 1}, {32, 8, 2, 1}};
    build(&range, 1, blocks, 3);
    assert_int_equal(residency.kept_bytes, PAGE);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(residency.owners[i].kept_bytes, PAGE / 3, PAGE / 3 + 1);
    residency_free(&residency);
}

// Of a large block only the pages that are resident count.
static void test_not_resident(void **state) {
    (void)state;
    static const uint8_t are_resident[] = {1, 0, 0, 1, 0};
    const struct residency_range range = {0x100000, 0x100000 + 5 * PAGE, are_resident};
    struct residency_block blocks[] = {{0x100010, 4 * PAGE, 3, 1}};
    build(&range, 1, blocks, 1);
    check_owner(3, 1, 4 * PAGE, 2 * PAGE, 2 * PAGE);
    assert_int_equal(residency.resident_bytes, 2 * PAGE);
    assert_int_equal(residency.live_bytes, 2 * PAGE - 0x10);
    assert_int_equal(residency.pages.items[0], PAGE - 0x10);
    assert_int_equal(residency.pages.items[1], RESIDENCY_ABSENT);
    assert_int_equal(residency.pages.items[3], PAGE);
    residency_free(&residency);
}

static void test_ranges(void **state) {
    (void)state;
    const struct residency_range ranges[] = {{PAGE, 2 * PAGE, NULL}, {4 * PAGE, 5 * PAGE, NULL}};
    // before, in, between, in, behind; one reaches into a range, one out of it
    struct residency_block blocks[] = {
        {0, 8, 0, 1},        {PAGE - 8, 16, 1, 1},     {2 * PAGE - 8, 16, 1, 1},
        {3 * PAGE, 8, 0, 1}, {5 * PAGE - 8, 16, 2, 1}, {6 * PAGE, 8, 0, 1}};
    build(ranges, 2, blocks, 6);
    check_owner(0, 3, 24, 0, 0);
    check_owner(1, 2, 32, PAGE, PAGE);
    check_owner(2, 1, 16, PAGE, PAGE);
    assert_int_equal(residency.outside_blocks, 3);
    assert_int_equal(residency.live_bytes, 24);
    residency_free(&residency);
}

static void test_odd_blocks(void **state) {
    (void)state;
    const struct residency_range range = {0, 2 * PAGE, NULL};
    // a block of no bytes keeps its page; blocks that overlap are no more than the page; an owner
    // that does not exist has none
    struct residency_block blocks[] = {
        {8, 0, 0, 1}, {PAGE, PAGE, 1, 1}, {PAGE + 8, PAGE - 8, 2, 1}, {2 * PAGE - 8, 8, OWNERS, 1}};
    build(&range, 1, blocks, 4);
    check_owner(0, 1, 0, PAGE, PAGE);
    assert_int_equal(residency.kept_bytes, 2 * PAGE);
    assert_int_equal(residency.pages.items[1], PAGE);
    check_owner(1, 1, PAGE, PAGE / 2, 0);
    check_owner(2, 1, PAGE - 8, PAGE / 2 - 4, 0);
    check_owner(OWNERS, 1, 8, 4, 0);
    residency_free(&residency);
    build(NULL, 0, blocks, 4);
    assert_int_equal(residency.resident_bytes, 0);
    assert_int_equal(residency.outside_blocks, 4);
    assert_int_equal(residency.owner_count, OWNERS + 1);
    check_owner(OWNERS, 1, 8, 0, 0);
    residency_free(&residency);
}

// A sample's share counts as often as it stands for others; whole pages are charged all the same.
static void test_samples(void **state) {
    (void)state;
    const struct residency_range range = {0, 2 * PAGE, NULL};
    struct residency_block blocks[] = {{0, 100, 0, 8}, {200, 300, 1, 1}, {PAGE, 64, 0, 16}};
    build(&range, 1, blocks, 3);
    check_owner(0, 2, 164, PAGE / 4 + PAGE, PAGE);
    assert_true(residency.owners[0].estimated_bytes == 8 * PAGE / 4 + 16.0 * PAGE);
    assert_true(residency.owners[1].estimated_bytes == PAGE * 3 / 4);
    residency_free(&residency);
}

// More blocks than are kept at hand, each page with many, and one that reaches over all of them.
static void test_many(void **state) {
    (void)state;
    enum { PAGES = 200, A_PAGE = 128, COUNT = PAGES * A_PAGE + 1 };
    const struct residency_range range = {0, PAGES * PAGE, NULL};
    struct residency_block *blocks = calloc(COUNT, sizeof *blocks);
    assert_non_null(blocks);
    blocks[0] = (struct residency_block){0, PAGES * PAGE, 0, 1};
    for (size_t i = 1; i < COUNT; i++)
        blocks[i] = (struct residency_block){(i - 1) * (PAGE / A_PAGE), PAGE / A_PAGE, 1, 1};
    build(&range, 1, blocks, COUNT);
    check_owner(0, 1, PAGES * PAGE, PAGES * PAGE / 2, 0);
    check_owner(1, COUNT - 1, PAGES * PAGE, PAGES * PAGE / 2, 0);
    residency_free(&residency);
    blocks[0].size = 8;
    build(&range, 1, blocks, COUNT);
    check_owner(1, COUNT - 1, PAGES * PAGE, PAGES * PAGE - PAGE * 8 / (PAGE + 8),
                (PAGES - 1) * PAGE);
    residency_free(&residency);
    free(blocks);
}

static void test_ranking(void **state) {
    (void)state;
    const struct residency_range range = {0, 6 * PAGE, NULL};
    struct residency_block blocks[] = {
        {0, 8, 2, 1}, {PAGE, 8, 1, 1}, {2 * PAGE, 8, 1, 1}, {3 * PAGE, 8, 0, 1}};
    size_t count;
    build(&range, 1, blocks, 4);
    uint32_t *ranking = residency_rank(&residency, &count);
    assert_non_null(ranking);
    assert_int_equal(count, 3);
    assert_int_equal(ranking[0], 1);
    assert_int_equal(ranking[1], 0);
    assert_int_equal(ranking[2], 2);
    free(ranking);
    residency_free(&residency);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),    cmocka_unit_test(test_shared),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_not_resident),
        cmocka_unit_test(test_ranges),   cmocka_unit_test(test_odd_blocks),
        cmocka_unit_test(test_ranking),  cmocka_unit_test(test_samples),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
