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
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
