// SPDX-License-Identifier: Apache-2.0
// The memory of another process, here this one's: read, gathered, copied, and pages without memory
// left without. With pages of every size that kernels have: the pagemap is made up then, and says
// of larger pages what this machine's says of smaller ones.
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
#include "tool/proc/process.h"

enum { PAGE_MOST = 65536, PAGES = 8 };

static size_t page_bytes;  // as large as those of some kernel
static bool is_made_up;    // the pagemap

static struct remote remote;
static uint8_t *pages;  // the second and the fifth have memory, the last cannot be read

static uint64_t address_of(size_t page) {
    return (uint64_t)(uintptr_t)pages + page * page_bytes;
}

static void *map_pages(void) {
    uint8_t *memory = mmap(NULL, PAGES * page_bytes + PAGE_MOST, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    return memory + (PAGE_MOST - (uintptr_t)memory % PAGE_MOST) % PAGE_MOST;
}

// A word a page, in a file with a hole before and behind.
static int make_up_pagemap(void) {
    const uint64_t own = 1ull << 63;
    uint64_t entries[PAGES] = {[1] = own, [4] = own};
    int made_up = memfd_create("pagemap", MFD_CLOEXEC);
    off_t at = (off_t)(address_of(0) / page_bytes * sizeof *entries);
    return pwrite(made_up, entries, sizeof entries, at) == sizeof entries ? made_up : -1;
}

static int setup(void **state) {
    (void)state;
    remote = remote_of(getpid());
    pages = map_pages();
    if (!pages) return 1;
    if (is_made_up)
        remote.pagemap = (struct pagemap){make_up_pagemap(), page_bytes};
    else
        remote.pagemap = pagemap_open(getpid());
    madvise(pages, PAGES * page_bytes, MADV_NOHUGEPAGE);
    memset(pages + page_bytes, 'b', page_bytes);
    memset(pages + 4 * page_bytes, 'e', page_bytes);
    return remote.pagemap.file < 0 ||
           mprotect(pages + (PAGES - 1) * page_bytes, page_bytes, PROT_NONE);
}

static int teardown(void **state) {
    (void)state;
    remote_close(&remote);
    return munmap(pages, PAGES * page_bytes);
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
    assert_true(remote_write(&opened, address_of(2) - 3, "border", sizeof "border"));
    assert_true(remote_read_text(&opened, address_of(2) - 3, bytes, sizeof bytes));
    assert_string_equal(bytes, "border");
    // cut where the next page cannot be read
    memset(pages + (PAGES - 1) * page_bytes - 4, 'x', 4);
    assert_true(remote_read_text(&opened, address_of(PAGES - 1) - 4, bytes, sizeof bytes));
    assert_string_equal(bytes, "xxxx");
    remote_close(&opened);
}

static void test_absent_pages_stay_absent(void **state) {
    (void)state;
    static uint8_t bytes[3 * PAGE_MOST];
    uint8_t flags[PAGES];
    struct page_heads heads;
    assert_true(remote_read_present(&remote, address_of(0), bytes, 3 * page_bytes));
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[page_bytes], 'b');
    assert_false(remote_read_present(&remote, address_of(2), bytes, page_bytes));
    page_heads_read(&heads, &remote, PAGE_OWN, address_of(0), address_of(PAGES));
    assert_int_equal(heads.count, 2);
    assert_int_equal(heads.items[0].address, address_of(1));
    assert_int_equal(heads.items[1].address, address_of(4));
    assert_int_equal(heads.items[1].words[3], 0x6565656565656565);
    assert_int_equal(heads.end, address_of(PAGES));
    assert_int_equal(pagemap_flags(&remote.pagemap, address_of(0), PAGES, flags), PAGES);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(flags[i], i == 1 || i == 4 ? PAGE_RESIDENT | PAGE_OWN : 0);
    assert_int_equal(pagemap_resident_bytes(&remote.pagemap, address_of(1) + 96, address_of(5)),
                     2 * page_bytes - 96);
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
    static uint8_t room[3 * PAGE_MOST];
    memset(room, 0, sizeof room);
    struct remote_runs runs = {0};
    assert_true(remote_add_run(&runs, address_of(1), room, page_bytes));
    assert_true(remote_add_run(&runs, address_of(PAGES - 1), room + page_bytes, page_bytes));
    assert_true(remote_add_run(&runs, address_of(4), room + 2 * page_bytes, page_bytes));
    assert_int_equal(remote_copy(&remote, runs.items.items, runs.items.count), 2 * page_bytes);
    assert_int_equal(room[0], 'b');
    assert_int_equal(room[page_bytes], 0);
    assert_int_equal(room[3 * page_bytes - 1], 'e');
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
    for (size_t i = 0; i < size; i += page_bytes)
        memset(from + i, (int)(i / page_bytes), page_bytes);
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
    page_bytes = process_page_bytes();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    is_made_up = true;
    for (page_bytes = 4096; page_bytes <= PAGE_MOST; page_bytes *= 4)
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
