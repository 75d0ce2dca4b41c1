// SPDX-License-Identifier: Apache-2.0
// Memory that was only read is no more than the kernel counts as resident.
#include "tool/proc/pagemap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { READ_PAGES = 40, WRITTEN_PAGES = 8, PAGES = 64 };
static const uint64_t present = 1ull << 63, exclusive = 1ull << 56, of_file = 1ull << 61;

// The page of zeros is that of many processes, and has one number.
static void test_zero_entries(void **state) {
    (void)state;
    enum { ZERO = 77 };
    uint64_t entries[] = {present | ZERO, present | exclusive | ZERO, present | 78,
                          present | of_file | ZERO, present};
    pagemap_drop_zero(entries, 5, ZERO);
    assert_false(entries[0] & present);
    assert_true(entries[1] & present);
    assert_true(entries[2] & present);
    assert_false(entries[3] & (present | of_file));  // a huge one counts as that of a file
    assert_true(entries[4] & present);
    entries[0] = present;
    pagemap_drop_zero(entries, 1, 0);  // numbers are hidden
    assert_true(entries[0] & present);
}

static char *pages_made(uint64_t page_bytes) {
    char *pages =
        mmap(NULL, PAGES * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    madvise(pages, PAGES * page_bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < READ_PAGES; i++) (void)((volatile char *)pages)[i * page_bytes];
    for (size_t i = 0; i < WRITTEN_PAGES; i++) pages[i * page_bytes] = 1;
    return pages;
}

// A kernel with a page of zeros counts those that were written, another one those that were read.
static void check_counted(const struct pagemap *pagemap, const char *pages) {
    const uint64_t bytes = pagemap->page_bytes;
    const uint64_t counted =
        pagemap_resident_bytes(pagemap, (uintptr_t)pages, (uintptr_t)pages + PAGES * bytes);
    assert_true(counted == WRITTEN_PAGES * bytes || counted == READ_PAGES * bytes);
}

// Pages that a fork shares are resident in both.
static void test_read_and_shared(void **state) {
    (void)state;
    struct pagemap own = pagemap_open(getpid());
    if (own.file < 0) skip();
    char *pages = pages_made(own.page_bytes);
    check_counted(&own, pages);
    int link[2];
    assert_int_equal(pipe(link), 0);
    pid_t child = fork();
    if (!child) {
        char word;
        close(link[1]);
        _exit(read(link[0], &word, 1) != 0);
    }
    check_counted(&own, pages);
    close(link[1]);
    close(link[0]);
    waitpid(child, NULL, 0);
    munmap(pages, PAGES * own.page_bytes);
    pagemap_close(&own);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_zero_entries),
                                       cmocka_unit_test(test_read_and_shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
