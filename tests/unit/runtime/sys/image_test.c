// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/image.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { DAMAGED_ROUNDS = 3000, DAMAGED_BYTES = 8, EXECUTABLE = 0700 };
static const char plain_program[] = "/bin/sh", own_program[] = "/proc/self/exe";

static void test_programs_are_told_apart(void **state) {
    (void)state;
    enum cairn_unrecorded found = CAIRN_UNRECORDED_LSAN;
    assert_true(image_look(AT_FDCWD, plain_program, &found));
    assert_int_equal(found, CAIRN_UNRECORDED_NONE);
    assert_true(image_look(AT_FDCWD, own_program, &found));  // unit tests are built with it
    assert_int_equal(found, CAIRN_UNRECORDED_ASAN);
}

static void test_what_is_no_program_is_not_there(void **state) {
    (void)state;
    enum cairn_unrecorded found = CAIRN_UNRECORDED_NONE;
    assert_false(image_look(AT_FDCWD, "/nowhere/at/all", &found));
    assert_false(image_look(AT_FDCWD, "/tmp", &found));
    assert_false(image_look(AT_FDCWD, "/etc/passwd", &found));
    assert_false(image_look(AT_FDCWD, NULL, &found));
    assert_false(image_look_at_file(-1, &found));
}

// A copy in memory, which may be executed.
static int copy_of(const char *path, size_t *bytes, uint8_t **content) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC), copy = memfd_create("image", MFD_CLOEXEC);
    assert_true(file >= 0 && copy >= 0 && fstat(file, &status) == 0);
    *bytes = (size_t)status.st_size;
    assert_int_equal(ftruncate(copy, status.st_size), 0);
    assert_int_equal(fchmod(copy, EXECUTABLE), 0);
    *content = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
    assert_ptr_not_equal(*content, MAP_FAILED);
    assert_int_equal(read(file, *content, *bytes), status.st_size);
    close(file);
    return copy;
}

static void test_damaged_files_end_the_search(void **state) {
    (void)state;
    uint64_t random = 1;
    size_t bytes;
    uint8_t *content;
    int copy = copy_of(plain_program, &bytes, &content);
    for (int round = 0; round < DAMAGED_ROUNDS; round++) {
        size_t places[DAMAGED_BYTES];
        uint8_t kept[DAMAGED_BYTES];
        // Mostly in the headers and the tables of the first pages.
        size_t most = round % 2 ? bytes : bytes < 8192 ? bytes : 8192;
        for (int i = 0; i < DAMAGED_BYTES; i++) {
            places[i] = random_below(&random, most);
            kept[i] = content[places[i]];
            content[places[i]] = (uint8_t)random_next(&random);
        }
        enum cairn_unrecorded found = CAIRN_UNRECORDED_LSAN;
        assert_true(image_look_at_file(copy, &found));
        assert_in_range(found, CAIRN_UNRECORDED_NONE, CAIRN_UNRECORDED_ITSELF);
        for (int i = DAMAGED_BYTES; i-- > 0;) content[places[i]] = kept[i];
    }
    munmap(content, bytes);
    close(copy);
}

static void test_cut_files_end_the_search(void **state) {
    (void)state;
    size_t bytes;
    uint8_t *content;
    int copy = copy_of(plain_program, &bytes, &content);
    munmap(content, bytes);
    for (; bytes > 0; bytes -= bytes / 64 + 1) {
        enum cairn_unrecorded found = CAIRN_UNRECORDED_LSAN;
        assert_int_equal(ftruncate(copy, (off_t)bytes), 0);
        assert_true(image_look_at_file(copy, &found));
        assert_int_equal(found, CAIRN_UNRECORDED_NONE);
    }
    close(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_are_told_apart),
        cmocka_unit_test(test_what_is_no_program_is_not_there),
        cmocka_unit_test(test_damaged_files_end_the_search),
        cmocka_unit_test(test_cut_files_end_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
