// SPDX-License-Identifier: Apache-2.0
// What is packed comes back as it was; what claims to be packed and is not gives what is whole, and
// no more memory than its size may ask for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/packed.h"
#include "tests/tools/make_recording.h"
#include "tool/model/reader.h"
#include "tool/model/rewrite.h"
#include "tool/model/source.h"

struct packed {
    struct cairn_section section;
    uint8_t *stored;
};

static struct packed pack_as(uint32_t kind, const uint8_t *bytes, size_t size,
                             uint32_t entry_bytes) {
    struct packed packed = {.section = {.kind = kind, .entry_bytes = entry_bytes}};
    struct error error;
    int file = memfd_create("packed", 0);
    struct packer *packer = packer_new(file, 64);
    assert_non_null(packer);
    assert_true(packer_add(packer, &packed.section, bytes, size, &error));
    assert_int_equal(packed.section.offset, 64);
    assert_int_equal(packed.section.capacity_bytes, size);
    assert_true(packer_end(packer) >= 64 + packed.section.used_bytes);
    packed.stored = malloc(packed.section.used_bytes + 1);
    assert_int_equal(pread(file, packed.stored, packed.section.used_bytes, 64),
                     packed.section.used_bytes);
    packer_free(packer);
    close(file);
    return packed;
}

static struct packed pack(const uint8_t *bytes, size_t size, uint32_t entry_bytes) {
    return pack_as(CAIRN_SECTION_MODULES, bytes, size, entry_bytes);
}

// Returns the bytes given from the first `stored_size` that are stored; these are as they were.
static size_t give(const struct packed *packed, const uint8_t *bytes, size_t stored_size,
                   uint64_t budget) {
    size_t size = packed->section.capacity_bytes;
    uint8_t *out = calloc(1, size + 1);
    size_t given = unpack_section(packed->stored, stored_size, packed->section.entry_bytes, out,
                                  size, &budget);
    assert_true(given <= size);
    assert_memory_equal(out, bytes, given);
    free(out);
    return given;
}

// Numbers that compress, and noise that does not, with a stretch of zeros in between.
static uint8_t *content(size_t size) {
    uint8_t *bytes = calloc(1, size + 1);
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        if (i < size / 3) bytes[i] = (uint8_t)(i / 8);
        if (i > size - size / 4) bytes[i] = (uint8_t)(state >> 24);
    }
    return bytes;
}

static void test_comes_back(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 7, 4096, 100000, CAIRN_PACKED_BLOCK_BYTES, 5000000};
    const uint32_t entries[] = {1, 2, 4, 8, 40, 264, 400, CAIRN_PACKED_BLOCK_BYTES + 8};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint8_t *bytes = content(sizes[s]);
        for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++) {
            struct packed packed = pack(bytes, sizes[s], entries[e]);
            size_t given = give(&packed, bytes, packed.section.used_bytes, UINT64_MAX);
            assert_int_equal(given, sizes[s]);
            free(packed.stored);
        }
        free(bytes);
    }
}

static void test_zeros_take_no_room(void **state) {
    (void)state;
    const size_t size = 64 << 20;
    uint8_t *bytes = calloc(1, size);
    struct packed packed = pack(bytes, size, 32);
    assert_int_equal(packed.section.used_bytes,
                     size / CAIRN_PACKED_BLOCK_BYTES * sizeof(struct cairn_packed_block));
    assert_int_equal(give(&packed, bytes, packed.section.used_bytes, 0), size);
    free(packed.stored);
    free(bytes);
}

static void test_cut_anywhere(void **state) {
    (void)state;
    const size_t size = 2000000;
    uint8_t *bytes = content(size);
    struct packed packed = pack(bytes, size, 40);
    size_t before = 0;
    for (size_t left = 0; left < packed.section.used_bytes; left += 9973) {
        size_t given = give(&packed, bytes, left, UINT64_MAX);
        assert_true(given >= before && given < size);
        before = given;
    }
    free(packed.stored);
    free(bytes);
}

static void test_changed_bytes(void **state) {
    (void)state;
    const size_t size = 300000;
    uint8_t *bytes = content(size), *out = malloc(size);
    struct packed packed = pack(bytes, size, 40);
    for (size_t at = 0; at < packed.section.used_bytes; at += 1 + at / 50) {
        uint64_t budget = UINT64_MAX;
        packed.stored[at] ^= 0xff;
        memset(out, 0, size);
        assert_true(unpack_section(packed.stored, packed.section.used_bytes, 40, out, size,
                                   &budget) <= size);
        packed.stored[at] ^= 0xff;
    }
    free(packed.stored);
    free(bytes);
    free(out);
}

static void test_budget(void **state) {
    (void)state;
    const size_t size = 8 * CAIRN_PACKED_BLOCK_BYTES;
    uint8_t *bytes = malloc(size);
    memset(bytes, 7, size);
    struct packed packed = pack(bytes, size, 1);
    const uint64_t budget = 3 * CAIRN_PACKED_BLOCK_BYTES + 1;
    assert_int_equal(give(&packed, bytes, packed.section.used_bytes, budget),
                     3 * CAIRN_PACKED_BLOCK_BYTES);
    free(packed.stored);
    free(bytes);
}

static void assert_same(const struct recording *a, const struct recording *b) {
    for (int kind = 1; kind < RECORDING_SECTION_KINDS; kind++) {
        if (kind == CAIRN_SECTION_SYMBOLS) continue;
        assert_int_equal(a->sections[kind].size, b->sections[kind].size);
        assert_int_equal(a->sections[kind].count, b->sections[kind].count);
        if (a->sections[kind].size)
            assert_memory_equal(a->sections[kind].bytes, b->sections[kind].bytes,
                                a->sections[kind].size);
    }
}

static void set_names(const char *path, const char *text, uint32_t version) {
    struct error error;
    struct recording recording;
    assert_true(recording_set_section(path, CAIRN_SECTION_SYMBOLS, 1, text, strlen(text), &error));
    assert_true(recording_open(path, &recording, &error));
    assert_int_equal(recording.header.version, version);
    assert_int_equal(recording.sections[CAIRN_SECTION_SYMBOLS].size, strlen(text));
    assert_memory_equal(recording.sections[CAIRN_SECTION_SYMBOLS].bytes, text, strlen(text));
    recording_close(&recording);
}

// A recording of a version, compact or raw, gets names, which packs it, and then other names.
static void check_packing(uint32_t version, bool is_compact) {
    static struct making making;
    const char *path = "pack_test.cairn";
    const uint32_t packed = cairn_version_packed(version);
    struct recording before, after;
    struct error error;
    size_t size;
    making_sample(&making);
    making.header.version = version;
    uint8_t *bytes = making_finish(&making, is_compact, &size);
    making_write(path, bytes, size);
    assert_true(recording_open_memory(bytes, size, &before, &error));
    set_names(path, "names", packed);
    set_names(path, "other names", packed);
    assert_true(recording_open(path, &after, &error));
    assert_false(damage_is_any(&after.damage));
    assert_same(&before, &after);
    recording_close(&after);
    recording_close(&before);
    free(bytes);
    unlink(path);
}

static void test_a_recording(void **state) {
    (void)state;
    const uint32_t without_short_records = 4;
    assert_int_equal(cairn_version_packed(CAIRN_VERSION), CAIRN_VERSION_PACKED);
    for (int is_compact = 0; is_compact < 2; is_compact++) {
        check_packing(CAIRN_VERSION, is_compact);
        check_packing(without_short_records, is_compact);
    }
}

// Writes a recording to a file; for free().
static uint8_t *write_sample(const char *path) {
    static struct making making;
    size_t size;
    making_sample(&making);
    uint8_t *bytes = making_finish(&making, true, &size);
    making_write(path, bytes, size);
    return bytes;
}

// Stacks of a deep recursion give a thousand times the size of the file.
static void test_what_repeats_is_given(void **state) {
    (void)state;
    enum { BYTES = 160 << 20 };
    const char *path = "pack_test_repeated.cairn";
    struct recording recording;
    struct error error;
    uint8_t *bytes = write_sample(path);
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, 'a', BYTES);
    assert_true(recording_set_section(path, CAIRN_SECTION_SYMBOLS, 1, text, BYTES, &error));
    assert_true(recording_open(path, &recording, &error));
    assert_false(damage_is_any(&recording.damage));
    assert_int_equal(recording.sections[CAIRN_SECTION_SYMBOLS].size, BYTES);
    recording_close(&recording);
    unlink(path);
    free(text);
    free(bytes);
}

// A header may promise more than the blocks give.
static void test_missing_is_said(void **state) {
    (void)state;
    const char *path = "pack_test_short.cairn";
    struct recording recording;
    struct error error;
    uint8_t *bytes = write_sample(path);
    set_names(path, "names", CAIRN_VERSION_PACKED);
    const long place = offsetof(struct cairn_header, sections[0].capacity_bytes);
    uint64_t capacity;
    FILE *file = fopen(path, "r+b");
    fseek(file, place, SEEK_SET);
    assert_int_equal(fread(&capacity, sizeof capacity, 1, file), 1);
    capacity += 1000;
    fseek(file, place, SEEK_SET);
    assert_int_equal(fwrite(&capacity, sizeof capacity, 1, file), 1);
    fclose(file);
    assert_true(recording_open(path, &recording, &error));
    assert_int_equal(recording.damage.missing_bytes, 1000);
    recording_close(&recording);
    unlink(path);
    free(bytes);
}

// The part of a hash that cells have is left out, and nothing else.
static void test_cells_without_check(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    const size_t size = COUNT * sizeof(struct cairn_cell);
    struct cairn_cell *cells = calloc(1, size), *out = calloc(1, size);
    for (uint32_t i = 0; i < COUNT; i++)
        cells[i] = (struct cairn_cell){
            .calls = i, .epoch = 7, .check = i * 2654435769u, .size = 24, .record = i * 6};
    struct packed whole = pack((const uint8_t *)cells, size, sizeof *cells);
    struct packed left = pack_as(CAIRN_SECTION_CELLS, (const uint8_t *)cells, size, sizeof *cells);
    uint64_t budget = UINT64_MAX;
    assert_int_equal(unpack_section(left.stored, left.section.used_bytes, sizeof *cells,
                                    (uint8_t *)out, size, &budget),
                     size);
    for (uint32_t i = 0; i < COUNT; i++) cells[i].check = 0;
    assert_memory_equal(out, cells, size);
    assert_true(left.section.used_bytes < whole.section.used_bytes / 2);
    free(whole.stored);
    free(left.stored);
    free(cells);
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_zeros_take_no_room),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_a_recording),
        cmocka_unit_test(test_missing_is_said),
        cmocka_unit_test(test_cells_without_check),
        cmocka_unit_test(test_what_repeats_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
