// SPDX-License-Identifier: Apache-2.0
// A recording made by hand is saved; what the file says is read back byte by byte.
#include "runtime/sink/compact.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { SECTIONS = 5, RAW_BYTES = 1 << 20, ALIGNMENT = 64, PATH_BYTES = 256 };

static const struct cairn_section sections[SECTIONS] = {
    {CAIRN_SECTION_MODULES, 256, 16384, 8192, 512},
    {CAIRN_SECTION_STRINGS, 1, 24576, 8192, 77},
    {CAIRN_SECTION_THREADS, 128, 32768, 4096, 0},
    {CAIRN_SECTION_CELLS, 32, 36864, 65536, 1 << 20},  // more asked for than there was
    {CAIRN_SECTION_RECORDS, 4, 204800, 262144, 99996},
};

static struct cairn_header *raw;
static char directory[] = "compact-test.XXXXXX";
static char path[PATH_BYTES], temporary[PATH_BYTES];

static int setup(void **state) {
    (void)state;
    uint64_t seed = 1;
    raw = mmap(NULL, RAW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < RAW_BYTES / 8; i++) ((uint64_t *)raw)[i] = random_next(&seed);
    memset(raw, 0, sizeof *raw);
    memcpy(raw->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    raw->version = CAIRN_VERSION;
    raw->header_bytes = CAIRN_HEADER_BYTES;
    raw->mapped_bytes = RAW_BYTES;
    raw->section_count = SECTIONS;
    raw->state = CAIRN_STATE_ENDED;
    raw->totals.peak_bytes = 12345;
    memcpy(raw->sections, sections, sizeof sections);
    if (!mkdtemp(directory)) return -1;
    snprintf(path, sizeof path, "%s/x.cairn", directory);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(path);
    unlink(temporary);
    return rmdir(directory);
}

static uint8_t *file_read(size_t *size) {
    struct stat status;
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &status), 0);
    uint8_t *bytes = malloc((size_t)status.st_size);
    assert_int_equal(read(file, bytes, (size_t)status.st_size), status.st_size);
    assert_int_equal(status.st_mode & 0777, 0600);
    close(file);
    *size = (size_t)status.st_size;
    return bytes;
}

static void check_sections(const uint8_t *file, size_t size, const struct cairn_header *header) {
    uint64_t end = CAIRN_HEADER_BYTES;
    for (int i = 0; i < SECTIONS; i++) {
        const struct cairn_section *section = &header->sections[i];
        uint64_t wanted = sections[i].used_bytes < sections[i].capacity_bytes
                              ? sections[i].used_bytes
                              : sections[i].capacity_bytes;
        assert_int_equal(section->kind, sections[i].kind);
        assert_int_equal(section->entry_bytes, sections[i].entry_bytes);
        assert_int_equal(section->used_bytes, wanted);
        assert_int_equal(section->capacity_bytes, wanted);
        assert_true(section->offset >= end && section->offset + wanted <= size);
        assert_int_equal(section->offset % ALIGNMENT, 0);
        assert_memory_equal(file + section->offset, (uint8_t *)raw + sections[i].offset, wanted);
        end = section->offset + wanted;
    }
}

static void check_file(void) {
    size_t size;
    uint8_t *file = file_read(&size);
    struct cairn_header header;
    assert_true(size >= sizeof header && size < RAW_BYTES);
    memcpy(&header, file, sizeof header);
    assert_memory_equal(header.magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    assert_int_equal(header.is_compact, 1);
    assert_int_equal(header.mapped_bytes, size);
    assert_int_equal(header.state, CAIRN_STATE_ENDED);
    assert_int_equal(header.totals.peak_bytes, 12345);
    check_sections(file, size, &header);
    assert_memory_equal(raw->sections, sections, sizeof sections);
    assert_int_equal(raw->is_compact, 0);
    assert_int_not_equal(access(temporary, F_OK), 0);
    free(file);
}

static void test_saved_and_read_back(void **state) {
    (void)state;
    assert_true(compact_save(raw, path));
    check_file();
    assert_true(compact_save(raw, path));  // in the place of the old one
    check_file();
}

static void file_write(const char *where, const char *text) {
    FILE *file = fopen(where, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void check_untouched(const char *where, const char *text) {
    char bytes[64] = {0};
    FILE *file = fopen(where, "r");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes - 1, file), strlen(text));
    fclose(file);
    assert_string_equal(bytes, text);
}

static void test_failures_change_nothing(void **state) {
    (void)state;
    char nowhere[PATH_BYTES + 8];
    struct rlimit old, low;
    unlink(path);
    file_write(path, "old");
    file_write(temporary, "somebody else's");
    assert_false(compact_save(raw, path));
    check_untouched(path, "old");
    check_untouched(temporary, "somebody else's");
    unlink(temporary);
    snprintf(nowhere, sizeof nowhere, "%s/none/x", directory);
    assert_false(compact_save(raw, nowhere));
    assert_false(compact_save(raw, ""));
    getrlimit(RLIMIT_FSIZE, &old);
    low = (struct rlimit){65536, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
    bool is_saved = compact_save(raw, path);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_false(is_saved);
    check_untouched(path, "old");
    assert_int_not_equal(access(temporary, F_OK), 0);
}

// The name in between is a link that somebody laid out.
static void test_links_are_not_followed(void **state) {
    (void)state;
    char victim[PATH_BYTES];
    snprintf(victim, sizeof victim, "%s/victim", directory);
    file_write(victim, "precious");
    assert_int_equal(symlink(victim, temporary), 0);
    unlink(path);
    assert_false(compact_save(raw, path));
    check_untouched(victim, "precious");
    unlink(temporary);
    assert_int_equal(symlink(victim, path), 0);
    assert_true(compact_save(raw, path));
    check_untouched(victim, "precious");
    check_file();
    unlink(victim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved_and_read_back),
        cmocka_unit_test(test_failures_change_nothing),
        cmocka_unit_test(test_links_are_not_followed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
