// SPDX-License-Identifier: Apache-2.0
// Who is charged with which resident pages, on maps that were made up.
#include "tool/model/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OWNERS = 4 };

static uint64_t page;  // bytes of one, as kernels have them

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
    assert_true(residency_build(&residency, page, ranges, range_count, &blocks, OWNERS, NULL));
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
    const struct residency_range range = {0x10000, 0x10000 + 4 * page, NULL};
    // 64 bytes on each of three pages; the fourth is empty
    struct residency_block blocks[] = {
        {0x10010, 64, 1, 1}, {0x10000 + page, 64, 1, 1}, {0x10000 + 3 * page - 64, 64, 1, 1}};
    build(&range, 1, blocks, 3);
    check_owner(1, 3, 192, 3 * page, 3 * page);
    check_owner(0, 0, 0, 0, 0);
    assert_int_equal(residency.resident_bytes, 4 * page);
    assert_int_equal(residency.kept_bytes, 3 * page);
    assert_int_equal(residency.live_bytes, 192);
    assert_int_equal(residency.pages.items[1], 64);
    assert_int_equal(residency.pages.items[3], 0);
    residency_free(&residency);
}

static void test_shared(void **state) {
    (void)state;
    const struct residency_range range = {0, 2 * page, NULL};
    // the first page is shared 1 to 3, the second belongs to owner 2, whose block begins before it
    struct residency_block blocks[] = {{0, 100, 0, 1}, {1000, 200, 2, 1}, {page - 100, 1100, 2, 1}};
    build(&range, 1, blocks, 3);
    check_owner(0, 1, 100, page / 4, 0);
    check_owner(2, 2, 1300, page / 4 * 3 + page, page);
    residency_free(&residency);
}

// Thirds of a page are no whole numbers: nothing is lost.
static void test_rounding(void **state) {
    (void)state;
    const struct residency_range range = {0, page, NULL};
    struct residency_block blocks[] = {{0, 8, 0, 1}, {16, 8, 1, 1}, {32, 8, 2, 1}};
    build(&range, 1, blocks, 3);
    assert_int_equal(residency.kept_bytes, page);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(residency.owners[i].kept_bytes, page / 3, page / 3 + 1);
    residency_free(&residency);
}

// Of a large block only the pages that are resident count.
static void test_not_resident(void **state) {
    (void)state;
    static const uint8_t are_resident[] = {1, 0, 0, 1, 0};
    const struct residency_range range = {0x100000, 0x100000 + 5 * page, are_resident};
    struct residency_block blocks[] = {{0x100010, 4 * page, 3, 1}};
    build(&range, 1, blocks, 1);
    check_owner(3, 1, 4 * page, 2 * page, 2 * page);
    assert_int_equal(residency.resident_bytes, 2 * page);
    assert_int_equal(residency.live_bytes, 2 * page - 0x10);
    assert_int_equal(residency.pages.items[0], page - 0x10);
    assert_int_equal(residency.pages.items[1], RESIDENCY_ABSENT);
    assert_int_equal(residency.pages.items[3], page);
    residency_free(&residency);
}

static void test_ranges(void **state) {
    (void)state;
    const struct residency_range ranges[] = {{page, 2 * page, NULL}, {4 * page, 5 * page, NULL}};
    // before, in, between, in, behind; one reaches into a range, one out of it
    struct residency_block blocks[] = {
        {0, 8, 0, 1},        {page - 8, 16, 1, 1},     {2 * page - 8, 16, 1, 1},
        {3 * page, 8, 0, 1}, {5 * page - 8, 16, 2, 1}, {6 * page, 8, 0, 1}};
    build(ranges, 2, blocks, 6);
    check_owner(0, 3, 24, 0, 0);
    check_owner(1, 2, 32, page, page);
    check_owner(2, 1, 16, page, page);
    assert_int_equal(residency.outside_blocks, 3);
    assert_int_equal(residency.live_bytes, 24);
    residency_free(&residency);
}

static void test_odd_blocks(void **state) {
    (void)state;
    const struct residency_range range = {0, 2 * page, NULL};
    // a block of no bytes keeps its page; blocks that overlap are no more than the page; an owner
    // that does not exist has none
    struct residency_block blocks[] = {
        {8, 0, 0, 1}, {page, page, 1, 1}, {page + 8, page - 8, 2, 1}, {2 * page - 8, 8, OWNERS, 1}};
    build(&range, 1, blocks, 4);
    check_owner(0, 1, 0, page, page);
    assert_int_equal(residency.kept_bytes, 2 * page);
    assert_int_equal(residency.pages.items[1], page);
    check_owner(1, 1, page, page / 2, 0);
    check_owner(2, 1, page - 8, page / 2 - 4, 0);
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
    const struct residency_range range = {0, 2 * page, NULL};
    struct residency_block blocks[] = {{0, 100, 0, 8}, {200, 300, 1, 1}, {page, 64, 0, 16}};
    build(&range, 1, blocks, 3);
    check_owner(0, 2, 164, page / 4 + page, page);
    assert_true(residency.owners[0].estimated_bytes == 8 * page / 4 + 16.0 * page);
    assert_true(residency.owners[1].estimated_bytes == page * 3 / 4);
    residency_free(&residency);
}

// More blocks than are kept at hand, each page with many, and one that reaches over all of them.
static void test_many(void **state) {
    (void)state;
    enum { PAGES = 200, A_PAGE = 128, COUNT = PAGES * A_PAGE + 1 };
    const struct residency_range range = {0, PAGES * page, NULL};
    struct residency_block *blocks = calloc(COUNT, sizeof *blocks);
    assert_non_null(blocks);
    blocks[0] = (struct residency_block){0, PAGES * page, 0, 1};
    for (size_t i = 1; i < COUNT; i++)
        blocks[i] = (struct residency_block){(i - 1) * (page / A_PAGE), page / A_PAGE, 1, 1};
    build(&range, 1, blocks, COUNT);
    check_owner(0, 1, PAGES * page, PAGES * page / 2, 0);
    check_owner(1, COUNT - 1, PAGES * page, PAGES * page / 2, 0);
    residency_free(&residency);
    blocks[0].size = 8;
    build(&range, 1, blocks, COUNT);
    check_owner(1, COUNT - 1, PAGES * page, PAGES * page - page * 8 / (page + 8),
                (PAGES - 1) * page);
    residency_free(&residency);
    free(blocks);
}

static void test_ranking(void **state) {
    (void)state;
    const struct residency_range range = {0, 6 * page, NULL};
    struct residency_block blocks[] = {
        {0, 8, 2, 1}, {page, 8, 1, 1}, {2 * page, 8, 1, 1}, {3 * page, 8, 0, 1}};
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
    int failed = 0;
    for (page = 4096; page <= 65536; page *= 4) failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
