// SPDX-License-Identifier: Apache-2.0
#include "runtime/sink/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/sys/sys.h"

static const uint64_t mib = 1 << 20;
static const uint32_t page_sizes[] = {65536, 16384, 4096};

static const struct cairn_section *section_of(const struct cairn_header *header, uint32_t kind) {
    const struct cairn_section *found = NULL;
    for (uint32_t i = 0; i < header->section_count; i++) {
        if (header->sections[i].kind != kind) continue;
        assert_null(found);
        found = &header->sections[i];
    }
    assert_non_null(found);
    return found;
}

static uint64_t entries_of(const struct cairn_header *header, uint32_t kind, uint32_t bytes) {
    const struct cairn_section *section = section_of(header, kind);
    assert_int_equal(section->entry_bytes, bytes);
    assert_int_equal(section->used_bytes, 0);
    return section->capacity_bytes / bytes;
}

static void check_places(const struct cairn_header *header, uint64_t total) {
    uint64_t end = CAIRN_HEADER_BYTES, page = sys_page_bytes();
    assert_true(header->section_count <= CAIRN_SECTION_MAX);
    for (uint32_t i = 0; i < header->section_count; i++) {
        const struct cairn_section *section = &header->sections[i];
        assert_int_equal(section->offset % page, 0);
        assert_int_equal(section->capacity_bytes % page, 0);
        assert_true(section->offset >= end && section->capacity_bytes > 0);
        end = section->offset + section->capacity_bytes;
    }
    assert_true(end <= total);
}

// Every cell has an owner, room for its record, and four of five the rare part.
static uint64_t check_columns(const struct cairn_header *header) {
    uint64_t cells = entries_of(header, CAIRN_SECTION_CELLS, sizeof(struct cairn_cell));
    uint64_t rare = entries_of(header, CAIRN_SECTION_CELLS_RARE, sizeof(struct cairn_cell_rare));
    uint64_t owners = entries_of(header, CAIRN_SECTION_OWNERS, sizeof(uint16_t));
    uint64_t words = entries_of(header, CAIRN_SECTION_RECORDS, sizeof(uint32_t));
    assert_true(rare >= cells * 4 / 5 && owners >= cells / CAIRN_CELL_BLOCK && words >= cells * 4);
    assert_true(words <= UINT32_MAX);  // a record is a 32-bit word index
    assert_true(entries_of(header, CAIRN_SECTION_MODULES, sizeof(struct cairn_module)) >= 1000);
    assert_true(entries_of(header, CAIRN_SECTION_THREADS, sizeof(struct cairn_thread)) >= 1000);
    entries_of(header, CAIRN_SECTION_STRINGS, 1);
    return cells;
}

static void check_every_space(void) {
    uint64_t last_cells = 0, fitting = 0;
    for (uint64_t space = 0; space <= 8192 * mib; space += space < 64 * mib ? mib / 4 : 31 * mib) {
        struct cairn_header header = {.section_count = 17};
        uint64_t bytes = layout_make(&header, space, (struct sink_rooms){0});
        assert_true(bytes <= space);
        if (!bytes) {
            assert_int_equal(fitting, 0);
            continue;
        }
        fitting++;
        check_places(&header, bytes);
        uint64_t cells = check_columns(&header);
        assert_true(cells >= last_cells);
        last_cells = cells;
    }
    assert_true(fitting > 200);
    assert_int_equal(last_cells, 1 << 25);
}

static void test_every_space(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof page_sizes / sizeof *page_sizes; i++) {
        sys_page_known = page_sizes[i];
        check_every_space();
    }
}

static const struct sink_rooms everything = {true, true, true, true, true, true, true};

// One byte less than a layout needs gives a smaller one.
static void check_exact_space(void) {
    struct cairn_header header;
    int layouts = 0;
    for (uint64_t bytes = layout_make(&header, 8192 * mib, everything); bytes; layouts++) {
        assert_int_equal(layout_make(&header, bytes, everything), bytes);
        uint64_t smaller = layout_make(&header, bytes - 1, everything);
        assert_true(smaller < bytes);
        bytes = smaller;
    }
    assert_true(layouts > 10);
}

static void test_exact_space(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof page_sizes / sizeof *page_sizes; i++) {
        sys_page_known = page_sizes[i];
        check_exact_space();
    }
}

// A recording takes an eighth of a limit on address space: 128 MiB are enough with pages of any
// size.
static void test_little_space_with_larger_pages(void **state) {
    (void)state;
    struct cairn_header header;
    const struct sink_rooms usual = {.has_mappings = true};
    for (unsigned i = 0; i < sizeof page_sizes / sizeof *page_sizes; i++) {
        sys_page_known = page_sizes[i];
        assert_true(layout_make(&header, 16 * mib, usual) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_space),
        cmocka_unit_test(test_exact_space),
        cmocka_unit_test(test_little_space_with_larger_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
