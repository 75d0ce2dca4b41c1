// SPDX-License-Identifier: Apache-2.0
// The memory of another process, here this one's: read, gathered, copied, and pages without memory
// left without.
#include "tool/proc/remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/proc/pagemap.h"

enum { PAGE = PAGEMAP_PAGE_BYTES, PAGES = 8 };

static struct remote remote;
static uint8_t *pages;  // the second and the fifth have memory, the last cannot be read

static uint64_t address_of(size_t page) {
    return (uint64_t)(uintptr_t)pages + page * PAGE;
}

static int setup(void **state) {
    (void)state;
    remote = remote_of(getpid());
    remote.pagemap = pagemap_open(getpid());
    pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 1;
    madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE);
    memset(pages + PAGE, 'b', PAGE);
    memset(pages + 4 * PAGE, 'e', PAGE);
    return mprotect(pages + (PAGES - 1) * PAGE, PAGE, PROT_NONE);
}

static int teardown(void **state) {
    (void)state;
    remote_close(&remote);
    return munmap(pages, PAGES * PAGE);
}

static void test_read(void **state) {
    (void)state;
    char bytes[8];
    struct error error;
    struct remote opened;
    assert_true(remote_read(&remote, address_of(1), bytes, sizeof bytes));
    assert_memory_equal(bytes, "bbbbbbbb", sizeof bytes);
    assert_false(remote_read(&remote, address_of(PAGES - 1) - 4, bytes, sizeof bytes));
    assert_false(remote_read(&remote, UINT64_MAX - 4, bytes, sizeof bytes));
    assert_true(remote_read(&remote, UINT64_MAX, bytes, 0));
    assert_true(remote_open(&opened, getpid(), &error));
    assert_true(remote_write(&opened, address_of(1), "text", sizeof "text"));
    assert_true(remote_read_text(&opened, address_of(1), bytes, sizeof bytes));
    assert_string_equal(bytes, "text");
    remote_close(&opened);
}

static void test_absent_pages_stay_absent(void **state) {
    (void)state;
    uint8_t bytes[3 * PAGE], flags[PAGES];
    struct page_heads heads;
    assert_true(remote_read_present(&remote, address_of(0), bytes, sizeof bytes));
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[PAGE], 'b');
    assert_false(remote_read_present(&remote, address_of(2), bytes, PAGE));
    page_heads_read(&heads, &remote, PAGE_OWN, address_of(0), address_of(PAGES));
    assert_int_equal(heads.count, 2);
    assert_int_equal(heads.items[0].address, address_of(1));
    assert_int_equal(heads.items[1].address, address_of(4));
    assert_int_equal(heads.items[1].words[3], 0x6565656565656565);
    assert_int_equal(heads.end, address_of(PAGES));
    assert_int_equal(pagemap_flags(remote.pagemap, address_of(0), PAGES, flags), PAGES);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(flags[i], i == 1 || i == 4 ? PAGE_RESIDENT | PAGE_OWN : 0);
    assert_int_equal(pagemap_resident_bytes(remote.pagemap, address_of(1) + 96, address_of(5)),
                     2 * PAGE - 96);
}

static void test_gather(void **state) {
    (void)state;
    char bytes[6] = "------";
    const struct remote_span spans[] = {
        {address_of(1), 2}, {address_of(4), 2}, {address_of(PAGES - 1), 2}};
    assert_int_equal(remote_gather(&remote, spans, 3, bytes), 4);
    assert_memory_equal(bytes, "bbee--", sizeof bytes);
}

// One run that cannot be read takes nothing from the others.
static void test_copy(void **state) {
    (void)state;
    enum { ROOM = 3 * PAGE };
    static uint8_t room[ROOM];
    struct remote_runs runs = {0};
    assert_true(remote_add_run(&runs, address_of(1), room, PAGE));
    assert_true(remote_add_run(&runs, address_of(PAGES - 1), room + PAGE, PAGE));
    assert_true(remote_add_run(&runs, address_of(4), room + 2 * PAGE, PAGE));
    assert_int_equal(remote_copy(&remote, runs.items.items, runs.items.count), 2 * PAGE);
    assert_int_equal(room[0], 'b');
    assert_int_equal(room[PAGE], 0);
    assert_int_equal(room[ROOM - 1], 'e');
    assert_int_equal(remote_copy(&remote, NULL, 0), 0);
    array_free(&runs.items);
}

// Large runs are cut into pieces, which several threads copy.
static void test_copy_much(void **state) {
    (void)state;
    const size_t size = 80 << 20;
    uint8_t *from = malloc(size), *to = malloc(size);
    struct remote_runs runs = {0};
    assert_true(from && to);
    for (size_t i = 0; i < size; i += PAGE) memset(from + i, (int)(i / PAGE), PAGE);
    assert_true(remote_add_run(&runs, (uint64_t)(uintptr_t)from, to, size));
    assert_true(runs.items.count > 1);
    assert_int_equal(remote_copy(&remote, runs.items.items, runs.items.count), size);
    assert_memory_equal(from, to, size);
    array_free(&runs.items);
    free(from);
    free(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_absent_pages_stay_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gather, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy_much, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
