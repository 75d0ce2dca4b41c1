// SPDX-License-Identifier: Apache-2.0
// Opening recordings: whole ones of all forms, and every refusal in its own words.
#include "tool/model/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/packed.h"
#include "tests/tools/make_recording.h"

static struct making making;

static uint8_t *sample(bool is_compact, size_t *size) {
    making_sample(&making);
    return making_finish(&making, is_compact, size);
}

static void check_sample(const struct recording *recording) {
    assert_int_equal(recording->header.pid, 4242);
    assert_int_equal(recording_count(recording, CAIRN_SECTION_MODULES), 3);
    assert_int_equal(recording_count(recording, CAIRN_SECTION_THREADS), 2);
    assert_int_equal(recording_count(recording, CAIRN_SECTION_CELLS), 3 * CAIRN_CELL_BLOCK);
    assert_false(damage_is_any(&recording->damage));
    struct cairn_thread thread;
    assert_true(recording_thread(recording, 1, &thread));
    assert_string_equal(thread.name, "worker");
    assert_false(recording_thread(recording, 2, &thread));
    uint16_t slot;
    assert_true(recording_owner(recording, 2 * CAIRN_CELL_BLOCK, &slot));
    assert_int_equal(slot, 1);
    assert_false(recording_owner(recording, 3 * CAIRN_CELL_BLOCK, &slot));
}

// A recording of a version that had wide blocks of cells, and its present reading.
static void test_owners_of_wide_blocks(void **state) {
    (void)state;
    const size_t wide = CAIRN_CELL_BLOCK_WIDE,
                 cells[] = {0, wide - 1, wide, 2 * wide - 1, 2 * wide};
    const uint16_t owners[] = {CAIRN_SLOT_SHARED, CAIRN_SLOT_SHARED, 0, 0, 1};
    size_t size;
    uint8_t *bytes = sample(true, &size);
    const uint32_t version = CAIRN_VERSION_WIDE - 1;
    memcpy(bytes + offsetof(struct cairn_header, version), &version, sizeof version);
    struct recording recording;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    for (int i = 0; i < 5; i++) {
        uint16_t slot;
        assert_true(recording_owner(&recording, cells[i], &slot));
        assert_int_equal(slot, owners[i]);
    }
    uint16_t slot;
    assert_false(recording_owner(&recording, 3 * wide, &slot));
    recording_close(&recording);
    free(bytes);
}

static void test_compact_and_raw(void **state) {
    (void)state;
    for (int is_compact = 0; is_compact < 2; is_compact++) {
        size_t size;
        uint8_t *bytes = sample(is_compact, &size);
        struct recording recording;
        assert_true(recording_open_memory(bytes, size, &recording, NULL));
        check_sample(&recording);
        recording_close(&recording);
        free(bytes);
    }
}

static void test_unaligned_memory(void **state) {
    (void)state;
    size_t size;
    uint8_t *bytes = sample(true, &size), *shifted = malloc(size + 1);
    memcpy(shifted + 1, bytes, size);
    struct recording recording;
    assert_true(recording_open_memory(shifted + 1, size, &recording, NULL));
    check_sample(&recording);
    recording_close(&recording);
    free(bytes);
    free(shifted);
}

// Sections of 1 GiB each in a file of a few pages: only what is used may be touched.
static void test_sparse_file(void **state) {
    (void)state;
    char path[] = "reader_test.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    making_sample(&making);
    making_write_sparse(&making, path, (uint64_t)1 << 30);
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    struct recording recording;
    assert_true(recording_open(path, &recording, NULL));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    check_sample(&recording);
    assert_true(recording.file_bytes < 1 << 20);
    assert_true(after.tv_sec - before.tv_sec < 2);
    recording_close(&recording);
    unlink(path);
}

static void check_refusal(const void *bytes, size_t size, const char *expected) {
    struct recording recording;
    struct error error;
    assert_false(recording_open_memory(bytes, size, &recording, &error));
    assert_string_equal(error.text, expected);
}

static const char NO_RECORDING[] =
    "is not a cairn recording; files of other profilers are read by cairn import";

static void test_refusals(void **state) {
    (void)state;
    size_t size;
    uint8_t *bytes = sample(true, &size);
    check_refusal(bytes, 0, "is empty, not a recording");
    check_refusal("hello", 5, NO_RECORDING);
    check_refusal("cair\x7f"
                  "ELF",
                  8, NO_RECORDING);
    check_refusal("cairn\n\x1a\x01\x01\x01", 10,
                  "is a recording whose line ends were converted as if it were text");
    check_refusal(bytes, 3, "is cut off: 3 bytes are left, its header alone has 16384");
    check_refusal(bytes, 16383, "is cut off: 16383 bytes are left, its header alone has 16384");
    struct cairn_header header;
    memcpy(&header, bytes, sizeof header);
    header.version = CAIRN_VERSION_PACKED + 1;
    check_refusal(&header, sizeof header,
                  "has format version 10, and this cairn reads versions 2 to 9");
    check_refusal(&header, 100, "has format version 10, and this cairn reads versions 2 to 9");
    header.version = CAIRN_VERSION;
    header.header_bytes = 64;
    check_refusal(&header, sizeof header,
                  "is damaged: its header claims 64 bytes instead of 16384");
    free(bytes);
}

static void test_files_that_are_none(void **state) {
    (void)state;
    struct recording recording;
    struct error error;
    assert_false(recording_open("/nonexistent/x.cairn", &recording, &error));
    assert_string_equal(error.text, "/nonexistent/x.cairn: No such file or directory");
    assert_false(recording_open(".", &recording, &error));
    assert_string_equal(error.text, ".: is not a file");
    assert_false(recording_open("/dev/null", &recording, &error));
    assert_string_equal(error.text, "/dev/null: is not a file");
}

static void test_claims_of_sections(void **state) {
    (void)state;
    size_t size;
    uint8_t *bytes = sample(false, &size);
    struct cairn_header *header = aligned_alloc(4096, CAIRN_HEADER_BYTES);
    memcpy(header, bytes, CAIRN_HEADER_BYTES);
    struct recording recording;
    // handed out beyond the capacity, as a full section says
    struct cairn_section *cells = &header->sections[4];
    cells->used_bytes = UINT64_MAX;
    memcpy(bytes, header, CAIRN_HEADER_BYTES);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_false(damage_is_any(&recording.damage));
    assert_int_equal(recording_count(&recording, CAIRN_SECTION_CELLS),
                     cells->capacity_bytes / sizeof(struct cairn_cell));
    recording_close(&recording);
    // an offset that cannot be
    cells->offset = UINT64_MAX - 8;
    memcpy(bytes, header, CAIRN_HEADER_BYTES);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(recording.damage.missing_bytes > 0);
    assert_int_equal(recording_count(&recording, CAIRN_SECTION_CELLS), 0);
    recording_close(&recording);
    // entries smaller than this version knows, and a table that is too long
    cells->entry_bytes = 8;
    header->section_count = 1000;
    memcpy(bytes, header, CAIRN_HEADER_BYTES);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_int_equal(recording.damage.bad_sections, 2);
    recording_close(&recording);
    free(header);
    free(bytes);
}

// Older recordings do not say it, and a damaged one says nonsense.
static void test_page_size(void **state) {
    (void)state;
    static const struct {
        uint32_t said, is;
    } cases[] = {{0, 4096},     {4096, 4096},    {16384, 16384}, {65536, 65536},
                 {12288, 4096}, {1 << 17, 4096}, {1, 4096},      {UINT32_MAX, 4096}};
    size_t size;
    uint8_t *bytes = sample(false, &size);
    struct recording recording;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bytes + offsetof(struct cairn_header, page_bytes), &cases[i].said,
               sizeof cases[i].said);
        assert_true(recording_open_memory(bytes, size, &recording, NULL));
        assert_int_equal(recording.header.page_bytes, cases[i].is);
        recording_close(&recording);
    }
    free(bytes);
}

// A later version may append fields to an entry: the step is the writer's, the rest is skipped.
static void test_longer_entries(void **state) {
    (void)state;
    size_t size;
    uint8_t *bytes = sample(true, &size);
    uint32_t entry_bytes = 2 * sizeof(struct cairn_thread);
    memcpy(bytes + offsetof(struct cairn_header, sections[2].entry_bytes), &entry_bytes,
           sizeof entry_bytes);
    struct recording recording;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_int_equal(recording_count(&recording, CAIRN_SECTION_THREADS), 1);
    recording_close(&recording);
    free(bytes);
}

static void test_strings(void **state) {
    (void)state;
    size_t size;
    uint8_t *bytes = sample(true, &size);
    struct recording recording;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_string_equal(recording_string(&recording, 1), "/usr/bin/sample");
    assert_string_equal(recording_string(&recording, 0), "");
    assert_int_equal(recording.damage.bad_strings, 0);
    assert_string_equal(recording_string(&recording, 100000), "");
    assert_int_equal(recording.damage.bad_strings, 1);
    recording_close(&recording);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact_and_raw),    cmocka_unit_test(test_owners_of_wide_blocks),
        cmocka_unit_test(test_unaligned_memory),   cmocka_unit_test(test_sparse_file),
        cmocka_unit_test(test_refusals),           cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_claims_of_sections), cmocka_unit_test(test_page_size),
        cmocka_unit_test(test_longer_entries),     cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
