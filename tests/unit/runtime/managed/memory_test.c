// SPDX-License-Identifier: Apache-2.0
// Memory that is read by what another runtime's words say: none is read that is not there, also
// where it was there before.
#include "runtime/managed/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct memory_reader memory;

static void test_taken_away(void **state) {
    (void)state;
    uint64_t word = 0, *page = sys_map(SYS_PAGE_LEAST);
    uintptr_t at = (uintptr_t)page;
    *page = 7;
    memory_begin(&memory);
    assert_true(memory_read_word(&memory, at, &word));
    assert_int_equal(word, 7);
    assert_false(memory_read_word(&memory, at + 1, &word));  // not a word's place
    memory_note_change();
    assert_int_equal(munmap(page, SYS_PAGE_LEAST), 0);
    memory_begin(&memory);
    assert_false(memory_read_word(&memory, at, &word));
    assert_false(memory_read_carefully(at, &word, sizeof word));
}

static void test_two_pages(void **state) {
    (void)state;
    const size_t size = SYS_PAGE_LEAST;
    char *pages = sys_map(2 * size);
    uint64_t words[2];
    memory_begin(&memory);
    assert_true(memory_read(&memory, (uintptr_t)pages + size - sizeof *words, words, sizeof words));
    assert_int_equal(mprotect(pages + size, size, PROT_NONE), 0);
    memory_note_change();
    memory_begin(&memory);
    assert_false(
        memory_read(&memory, (uintptr_t)pages + size - sizeof *words, words, sizeof words));
}

// What is careful reads the same by copies of pages as by a call each, over a gap too; a page is as
// it was when the event first read it, and anew in the next one.
static void test_copies(void **state) {
    (void)state;
    enum { PAGES = 40, GAP = 17, READS = 20000 };
    static struct memory_copies copies;
    struct memory_reader careful = {.copies = &copies, .is_careful = true};
    const size_t page = SYS_PAGE_LEAST;
    uint64_t *words = sys_map(PAGES * page), seen[64], told[64];
    uintptr_t start = (uintptr_t)words;
    for (size_t i = 0; i < PAGES * page / sizeof *words; i++) words[i] = i * 0x9e3779b97f4a7c15u;
    assert_int_equal(munmap((char *)words + GAP * page, page), 0);
    unsigned random = 1;
    for (int i = 0; i < READS; i++) {
        random = random * 1103515245 + 12345;
        uintptr_t at = start + (random >> 8) % (PAGES * page - sizeof seen) / 8 * 8;
        size_t size = (random >> 4) % (sizeof seen + 1);
        bool is_told = memory_read_carefully(at, told, size);
        assert_int_equal(memory_read(&careful, at, seen, size), is_told);
        if (is_told) assert_memory_equal(seen, told, size);
        if (i % 16 == 0) memory_forget_copies(&careful);
    }
    memory_forget_copies(&careful);
    assert_true(memory_read_word(&careful, start, seen));
    words[1] = 5;
    assert_true(memory_read_word(&careful, start + sizeof *words, seen));
    assert_int_equal(seen[0], 0x9e3779b97f4a7c15u);
    memory_forget_copies(&careful);
    assert_true(memory_read_word(&careful, start + sizeof *words, seen));
    assert_int_equal(seen[0], 5);
    // what is larger than a page
    static uint64_t large[2 * SYS_PAGE_LEAST / sizeof(uint64_t)];
    assert_true(memory_read(&careful, start + sizeof *words, large, sizeof large));
    assert_memory_equal(large, words + 1, sizeof large);
    assert_false(memory_read(&careful, start + (GAP - 1) * page, large, sizeof large));
}

// A forked child is another process, though the parent's number was remembered.
static void test_child(void **state) {
    (void)state;
    uint64_t word = 1, there = 2;
    int32_t *pid =
        mmap(NULL, SYS_PAGE_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pid, MAP_FAILED);
    if (madvise(pid, SYS_PAGE_MOST, MADV_WIPEONFORK)) skip();
    memory_remember_pid(pid);
    assert_true(memory_read_carefully((uintptr_t)&there, &word, sizeof word));
    pid_t child = fork();
    if (child == 0) {
        there = 3;
        bool is_read = memory_read_carefully((uintptr_t)&there, &word, sizeof word);
        _exit(is_read && word == there ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_away),
        cmocka_unit_test(test_two_pages),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
