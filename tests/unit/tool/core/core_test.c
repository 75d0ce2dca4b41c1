// SPDX-License-Identifier: Apache-2.0
// A core dump worked out by hand: its segments, the recording in it, the blocks of its live map;
// and the same cut or contradicting itself.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_core.h"
#include "tool/core/blocks.h"
#include "tool/core/recorded.h"

enum { CELLS = 100 };
enum { TOPS = 1, SLOTS = 3, HEAP = 4 };  // of make_core_set_file_bytes

static uint8_t bytes[MAKE_CORE_BYTES];
static char path[64];
static int file;
static struct core_image core;
static struct core_blocks blocks;
static struct error error;

static bool open_it(size_t size) {
    assert_int_equal(pwrite(file, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(ftruncate(file, (off_t)size), 0);
    return core_open(path, &core, &error);
}

static bool read_blocks(size_t cell_count) {
    struct cairn_header header;
    assert_true(core_find_recording(&core, &header));
    return core_read_blocks(&core, &header, cell_count, &blocks, &error);
}

static int setup(void **state) {
    (void)state;
    file = memfd_create("core test", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    make_core(bytes, false);
    core = (struct core_image){.source.descriptor = -1};
    blocks = (struct core_blocks){0};
    return file < 0;
}

static int teardown(void **state) {
    (void)state;
    core_free_blocks(&blocks);
    core_close(&core);
    close(file);
    return 0;
}

static void check_blocks(void) {
    assert_true(read_blocks(CELLS));
    assert_int_equal(blocks.items.count, 2);
    const struct core_block *first = &blocks.items.items[0], *second = &blocks.items.items[1];
    assert_int_equal(first->address, MAKE_CORE_FIRST);
    assert_int_equal(first->size, MAKE_CORE_FIRST_SIZE);
    assert_int_equal(first->cell, MAKE_CORE_FIRST_CELL);
    assert_int_equal(second->address, MAKE_CORE_SECOND);
    assert_int_equal(second->size, MAKE_CORE_SECOND_SIZE);
    assert_int_equal(second->cell, MAKE_CORE_SECOND_CELL);
    assert_int_equal(blocks.bytes, MAKE_CORE_FIRST_SIZE + MAKE_CORE_SECOND_SIZE);
    assert_int_equal(blocks.rejected_count + blocks.missing_leaves, 0);
    assert_ptr_equal(core_block_of(&blocks, MAKE_CORE_FIRST + MAKE_CORE_FIRST_SIZE - 1), first);
    assert_null(core_block_of(&blocks, MAKE_CORE_FIRST + MAKE_CORE_FIRST_SIZE));
    assert_null(core_block_of(&blocks, MAKE_CORE_FIRST - 1));
}

static void test_narrow(void **state) {
    (void)state;
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    assert_int_equal(core.pid, MAKE_CORE_PID);
    assert_int_equal(core.segments.count, 10);
    check_blocks();
}

static void test_wide(void **state) {
    (void)state;
    make_core(bytes, true);
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    check_blocks();
}

static void test_copy(void **state) {
    (void)state;
    struct cairn_header header, copy;
    char copy_path[PATH_MAX];
    int copy_file;
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    assert_true(core_find_recording(&core, &header));
    assert_true(core_copy_recording(&core, &header, copy_path, &error));
    assert_int_equal(sscanf(copy_path, "/proc/self/fd/%d", &copy_file), 1);
    assert_int_equal(pread(copy_file, &copy, sizeof copy, 0), sizeof copy);
    assert_memory_equal(&copy, &header, sizeof copy);
    close(copy_file);
}

// Cells that do not exist, and chunks that are smaller than their slots say.
static void test_rejects(void **state) {
    (void)state;
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    assert_true(read_blocks(MAKE_CORE_SECOND_CELL));
    assert_int_equal(blocks.items.count, 1);
    assert_int_equal(blocks.rejected_count, 1);
    core_free_blocks(&blocks);
    core_close(&core);
    make_core_set_file_bytes(bytes, HEAP, 0x20);
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    assert_true(read_blocks(CELLS));
    assert_int_equal(blocks.items.count, 1);
    assert_int_equal(blocks.rejected_count, 1);
}

static void test_missing(void **state) {
    (void)state;
    make_core_set_file_bytes(bytes, SLOTS, 0x100);
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    assert_true(read_blocks(CELLS));
    assert_int_equal(blocks.items.count, 0);
    assert_int_equal(blocks.missing_leaves, 1);
    core_free_blocks(&blocks);
    core_close(&core);
    make_core_set_file_bytes(bytes, TOPS, 8);
    assert_true(open_it(MAKE_CORE_FILE_BYTES));
    assert_false(read_blocks(CELLS));
    assert_non_null(strstr(error.text, "live blocks"));
}

static void test_cut(void **state) {
    (void)state;
    assert_true(open_it(MAKE_CORE_BYTES));
    assert_true(core.missing_bytes > 0);
    core_close(&core);
    assert_false(open_it(100));
    assert_false(open_it(10));
    assert_non_null(strstr(error.text, "not a core dump"));
    assert_false(core_is_one(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_narrow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wide, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rejects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
