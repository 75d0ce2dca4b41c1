// SPDX-License-Identifier: Apache-2.0
// A core dump worked out by hand: its segments, the recording in it, the blocks of its live map;
// and the same cut or contradicting itself.
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/live_map.h"
#include "tests/tools/make_core.h"
#include "tool/heap/blocks.h"
#include "tool/heap/recorded.h"

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
    return core_read_blocks(&core, &header, cell_count, NULL, &blocks, &error);
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

static void check_block(const struct core_block *block, uint64_t address, uint64_t size,
                        uint32_t cell) {
    assert_int_equal(block->address, address);
    assert_int_equal(block->size, size);
    assert_int_equal(block->cell, cell);
}

static void check_blocks(void) {
    assert_true(read_blocks(CELLS));
    assert_int_equal(blocks.items.count, 2);
    struct core_block_cursor cursor = {.blocks = &blocks};
    struct core_block block;
    assert_true(core_blocks_next(&cursor, &block));
    check_block(&block, MAKE_CORE_FIRST, MAKE_CORE_FIRST_SIZE, MAKE_CORE_FIRST_CELL);
    assert_true(core_blocks_next(&cursor, &block));
    check_block(&block, MAKE_CORE_SECOND, MAKE_CORE_SECOND_SIZE, MAKE_CORE_SECOND_CELL);
    assert_false(core_blocks_next(&cursor, &block));
    assert_int_equal(blocks.bytes, MAKE_CORE_FIRST_SIZE + MAKE_CORE_SECOND_SIZE);
    assert_int_equal(blocks.rejected_count + blocks.missing_leaves, 0);
    assert_true(core_block_of(&blocks, MAKE_CORE_FIRST + MAKE_CORE_FIRST_SIZE - 1, &block));
    check_block(&block, MAKE_CORE_FIRST, MAKE_CORE_FIRST_SIZE, MAKE_CORE_FIRST_CELL);
    assert_false(core_block_of(&blocks, MAKE_CORE_FIRST + MAKE_CORE_FIRST_SIZE, &block));
    assert_false(core_block_of(&blocks, MAKE_CORE_FIRST - 1, &block));
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

// Cells that do not exist, chunks that are smaller than their slots say, and what is no chunk's
// header.
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
    const uint64_t others[] = {0, 7, 0x10, 0x3b, 0x20003, 0x7f1234567890, UINT64_MAX & ~15ull};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        core_free_blocks(&blocks);
        core_close(&core);
        make_core(bytes, false);
        make_core_set_chunk(bytes, others[i]);
        assert_true(open_it(MAKE_CORE_FILE_BYTES));
        assert_true(read_blocks(CELLS));
        assert_int_equal(blocks.items.count, 1);
        assert_int_equal(blocks.rejected_count, 1);
    }
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

// --- wide slots of blocks at even and at odd multiples of 8, in memory that is made up

enum {
    TOPS_BYTES = 2 * (1 << (LIVE_ADDRESS_BITS_X86_64 - LIVE_MID_SHIFT)) * 8,
    MID_BYTES = LIVE_MID_COUNT * 8,
    LEAF_SLOTS = 1 << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT),
    MADE_LEAVES = 4,
    MADE_BYTES = TOPS_BYTES + 2 * MID_BYTES + MADE_LEAVES * LEAF_SLOTS * 8,
};
#define MADE_AT 0x7f0000000000u
#define MADE_HEAP ((uint64_t)1 << LIVE_MID_SHIFT)
#define MADE_LEAF ((uint64_t)1 << LIVE_LEAF_SHIFT)

// The slots of leaf number `leaf` of the heap, for odd multiples if `is_odd`; the next ones made.
static uint64_t *make_leaf(uint64_t *words, unsigned made, unsigned leaf, bool is_odd) {
    uint64_t *tops = words, *mids = words + TOPS_BYTES / 8;
    uint64_t *slots = mids + 2 * LIVE_MID_COUNT + (size_t)made * LEAF_SLOTS;
    uint64_t first = (MADE_HEAP + leaf * MADE_LEAF) >> LIVE_WIDE_SHIFT;
    tops[1 + (is_odd ? TOPS_BYTES / 16 : 0)] = MADE_AT + TOPS_BYTES + (is_odd ? MID_BYTES : 0);
    mids[leaf + (is_odd ? LIVE_MID_COUNT : 0)] =
        MADE_AT + (uint64_t)((uint8_t *)slots - (uint8_t *)words) - first * 8;
    return slots;
}

static uint64_t slot_of(uint64_t size, uint64_t cell) {
    return size << 32 | cell;
}

// Sizes and cells around those that fit into eight bytes, in the order of addresses.
static void test_order(void **state) {
    (void)state;
    const uint64_t size_large = (1 << 20) - 1, cell_large = 1 << 25, huge = (uint64_t)1 << 33;
    const struct core_block wanted[] = {
        {MADE_HEAP, 100, 5},
        {MADE_HEAP + 24, 3, (uint32_t)cell_large},
        {MADE_HEAP + 64, 0, 9},
        {MADE_HEAP + 160, size_large - 1, 7},
        {MADE_HEAP + MADE_LEAF - 16, 8, (uint32_t)cell_large - 1},
        {MADE_HEAP + 2 * MADE_LEAF + 88, size_large, 1},
        {MADE_HEAP + 3 * MADE_LEAF, huge, 6},
    };
    const size_t count = sizeof wanted / sizeof *wanted;
    uint64_t *words = calloc(1, MADE_BYTES), *slots;
    assert_non_null(words);
    slots = make_leaf(words, 0, 0, false);
    slots[0] = slot_of(100, 5);
    slots[4] = slot_of(0, 9);
    slots[10] = slot_of(size_large - 1, 7);
    slots[LEAF_SLOTS - 1] = slot_of(8, cell_large - 1);
    slots = make_leaf(words, 1, 3, false);
    slots[0] = slot_of(LIVE_SIZE_ESCAPE, 6);
    slots[1] = huge;
    make_leaf(words, 2, 0, true)[1] = slot_of(3, cell_large);
    make_leaf(words, 3, 2, true)[5] = slot_of(size_large, 1);
    struct memory_segment segment = {MADE_AT, MADE_AT + MADE_BYTES, 0, MADE_BYTES, true, false};
    core.map = (const uint8_t *)words;
    core.segments.items = &segment;
    core.segments.count = 1;
    const struct cairn_header header = {
        .machine = EM_X86_64, .slot_bytes = sizeof(uint64_t), .live_map = MADE_AT};
    assert_true(core_read_blocks(&core, &header, cell_large + 1, NULL, &blocks, &error));
    assert_int_equal(blocks.rejected_count + blocks.missing_leaves, 0);
    struct core_block_cursor cursor = {.blocks = &blocks};
    struct core_block block;
    for (size_t i = 0; i < count; i++) {
        assert_true(core_blocks_next(&cursor, &block));
        check_block(&block, wanted[i].address, wanted[i].size, wanted[i].cell);
        uint64_t inside = wanted[i].address + wanted[i].size / 32;
        assert_true(core_block_of(&blocks, inside, &block));
        check_block(&block, wanted[i].address, wanted[i].size, wanted[i].cell);
    }
    assert_false(core_blocks_next(&cursor, &block));
    assert_false(core_block_of(&blocks, MADE_HEAP - 1, &block));
    assert_false(core_block_of(&blocks, MADE_HEAP + MADE_LEAF, &block));
    assert_false(core_block_of(&blocks, MADE_HEAP + 3 * MADE_LEAF + huge, &block));
    // the last block of a leaf may reach into the next ones
    assert_true(core_block_of(&blocks, MADE_HEAP + 5 * MADE_LEAF, &block));
    assert_int_equal(block.cell, 6);
    core = (struct core_image){.source.descriptor = -1};
    free(words);
}

// The auxiliary vector, which the kernel puts into every core, says how large pages are.
static void test_page_size(void **state) {
    (void)state;
    struct {
        Elf64_Nhdr head;
        char name[8];
        uint64_t words[6];
    } __attribute__((packed))
    note = {{5, 6 * sizeof(uint64_t), NT_AUXV}, "CORE", {AT_RANDOM, MADE_AT, AT_PAGESZ, 0, 0, 0}};
    for (uint64_t page = 4096; page <= 65536; page *= 4) {
        core = (struct core_image){
            .source = {.descriptor = -1, .bytes = (const uint8_t *)&note, .size = sizeof note}};
        assert_int_equal(core_page_bytes(&core), 4096);
        note.words[3] = page;
        assert_true(core_read_notes(&core, 0, sizeof note));
        assert_int_equal(core.first_stack, MADE_AT);
        assert_int_equal(core_page_bytes(&core), page);
        assert_int_equal(core_view(&core).page_bytes, page);
    }
    note.words[3] = 1000;
    assert_true(core_read_notes(&core, 0, sizeof note));
    assert_int_equal(core_page_bytes(&core), 4096);
    core = (struct core_image){.source.descriptor = -1};
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
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_page_size, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
