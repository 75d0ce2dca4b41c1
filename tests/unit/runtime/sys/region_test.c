// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/region.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/sys/sys.h"
#include "tests/unit/runtime/random.h"

enum { PAGES = 4096, THREADS = 4 };

static uint64_t used;

static struct region region_make(uint64_t capacity, uint64_t chunk) {
    void *memory = mmap(NULL, capacity, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    used = 0;
    return (struct region){
        .base = memory, .capacity_bytes = capacity, .chunk_bytes = chunk, .used_bytes = &used};
}

static void test_takes_follow_each_other_until_full(void **state) {
    (void)state;
    const uint64_t capacity = 5 * sys_page_bytes(), piece = 100;
    struct region region = region_make(capacity, 2 * sys_page_bytes());
    for (uint64_t at = 0; at + piece <= capacity; at += piece) {
        uint8_t *taken = region_take(&region, piece);
        assert_ptr_equal(taken, region.base + at);
        for (uint64_t i = 0; i < piece; i++) assert_int_equal(taken[i], 0);
        memset(taken, 0xff, piece);
    }
    assert_null(region_take(&region, piece));
    assert_null(region_take(&region, 1));
    munmap(region.base, capacity);
}

static void test_exact_fit_and_absurd_sizes(void **state) {
    (void)state;
    const uint64_t capacity = sys_page_bytes();
    struct region region = region_make(capacity, 16 * sys_page_bytes());
    assert_ptr_equal(region_take(&region, capacity), region.base);
    assert_null(region_take(&region, 1));
    munmap(region.base, capacity);
    region = region_make(capacity, sys_page_bytes());
    assert_non_null(region_take(&region, 8));
    assert_null(region_take(&region, UINT64_MAX - 4));
    assert_null(region_take(&region, 8));
    munmap(region.base, capacity);
}

// The memory behind the second page is gone: claiming it fails, touching it would be a fault.
static void test_a_chunk_that_cannot_be_claimed(void **state) {
    (void)state;
    const uint64_t capacity = 8 * sys_page_bytes();
    struct region region = region_make(capacity, sys_page_bytes());
    munmap(region.base + 2 * sys_page_bytes(), capacity - 2 * sys_page_bytes());
    assert_non_null(region_take(&region, 2 * sys_page_bytes()));
    assert_null(region_take(&region, 16));
    assert_null(region_take(&region, 16));
    munmap(region.base, 2 * sys_page_bytes());
}

// The pages there are smaller than the region is told: what it claims is a multiple of both.
static void test_whole_pages_are_claimed_and_given_back(void **state) {
    (void)state;
    const uint64_t chunk = 64 << 10, capacity = 16 * chunk;
    for (uint64_t page = SYS_PAGE_LEAST; page <= SYS_PAGE_MOST; page *= 4) {
        uint64_t space = capacity;
        sys_page_known = (uint32_t)page;
        struct region region = region_make(capacity, chunk);
        region.space_bytes = &space;
        assert_non_null(region_take(&region, 8));
        assert_int_equal(region.claimed_bytes, page);
        assert_non_null(region_take(&region, page));
        assert_int_equal(region.claimed_bytes, 2 * page);
        assert_non_null(region_take(&region, 3 * page));
        assert_int_equal(region.claimed_bytes, page < chunk / 2 ? 6 * page : 5 * page);
        while (region.claimed_bytes < 2 * chunk) assert_non_null(region_take(&region, page));
        uint64_t claimed = region.claimed_bytes;
        assert_int_equal(claimed % page, 0);
        region_shrink(&region, 100);
        assert_int_equal(space, claimed + page);
        munmap(region.base, space);
    }
    sys_page_known = 0;
}

struct taker {
    struct region *region;
    uint64_t seed, taken_bytes;
    pthread_t thread;
};

static void *take_until_full(void *argument) {
    struct taker *taker = argument;
    for (;;) {
        uint64_t bytes = 8 * (1 + random_below(&taker->seed, 64));
        uint8_t *taken = region_take(taker->region, bytes);
        if (!taken) return NULL;
        for (uint64_t i = 0; i < bytes; i++) taken[i]++;
        taker->taken_bytes += bytes;
    }
}

static void test_threads_never_share_a_byte(void **state) {
    (void)state;
    const uint64_t capacity = PAGES * (uint64_t)sys_page_bytes();
    struct region region = region_make(capacity, 4 * sys_page_bytes());
    struct taker takers[THREADS] = {{0}};
    uint64_t own_bytes = sys_own_bytes();
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.region = &region, .seed = (uint64_t)i};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_until_full, &takers[i]), 0);
    }
    uint64_t taken_bytes = 0, marked_bytes = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(takers[i].thread, NULL);
        taken_bytes += takers[i].taken_bytes;
    }
    for (uint64_t i = 0; i < capacity; i++) {
        assert_true(region.base[i] <= 1);
        marked_bytes += region.base[i];
    }
    assert_int_equal(taken_bytes, marked_bytes);
    assert_int_equal(sys_own_bytes() - own_bytes, region.claimed_bytes);
    assert_true(capacity - taken_bytes < 4096);
    munmap(region.base, capacity);
}

// Somebody is claiming, and this thread needs some pages of what lies behind.
static void test_a_taker_claims_its_own_while_another_claims(void **state) {
    (void)state;
    const uint64_t page = sys_page_bytes(), capacity = PAGES * page, chunk = 16 * page;
    struct region region = region_make(capacity, chunk);
    assert_non_null(region_take(&region, chunk));
    uint64_t claimed = region.claimed_bytes, own_bytes = sys_own_bytes();
    unsigned char pages[16 * 8];
    region.behind_bytes = 4 * chunk;
    for (uint64_t at = chunk; at + 3 * page <= 4 * chunk; at += 3 * page) {
        assert_ptr_equal(region_take(&region, 3 * page), region.base + at);
        assert_true(sys_find_touched(region.base, 4 * chunk / page, pages));
        for (uint64_t i = 0; i < 4 * chunk / page; i++)
            assert_int_equal(pages[i] & 1, i < at / page + 3);
    }
    assert_int_equal(region.claimed_bytes, claimed);
    assert_int_equal(sys_own_bytes(), own_bytes);
    // whoever claims is behind so far that it must be gone
    uint64_t end = used + chunk;
    assert_non_null(region_take(&region, chunk));
    assert_in_range(region.claimed_bytes, end, end + chunk);
    assert_int_equal(sys_own_bytes() - own_bytes, region.claimed_bytes - claimed);
    assert_int_equal(region.behind_bytes, 0);
    munmap(region.base, capacity);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_follow_each_other_until_full),
        cmocka_unit_test(test_exact_fit_and_absurd_sizes),
        cmocka_unit_test(test_a_chunk_that_cannot_be_claimed),
        cmocka_unit_test(test_whole_pages_are_claimed_and_given_back),
        cmocka_unit_test(test_threads_never_share_a_byte),
        cmocka_unit_test(test_a_taker_claims_its_own_while_another_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
