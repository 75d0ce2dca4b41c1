// SPDX-License-Identifier: Apache-2.0
// One run is one path: what is left in the file system after runs of every kind.
#include "tool/watch/run_directory.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

#define SMALL_BYTES (64ull << 20)

static char place[] = "/tmp/cairn-store-test.XXXXXX";
static struct run_directory store;
static struct error error;

static int setup(void **state) {
    (void)state;
    strcpy(place + strlen(place) - 6, "XXXXXX");
    return mkdtemp(place) && chdir(place) == 0 ? 0 : 1;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", place);
    return chdir("/") == 0 ? system(command) : 1;
}

static mode_t kind_of(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

static void check_error(bool is_ok) {
    if (!is_ok) fail_msg("%s", error.text);
}

static void begin(const char *output) {
    check_error(run_directory_choose(&store, output, "prog", 7, &error));
    check_error(run_directory_make(&store, &error));
}

// A recording without anything but a header.
static void save(const char *name) {
    struct memory memory;
    const struct memory_end end = {.is_over = true};
    check_error(memory_make(&memory, &error));
    memcpy(memory.header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    memory.header->version = CAIRN_VERSION;
    memory.header->header_bytes = CAIRN_HEADER_BYTES;
    check_error(run_directory_save(&store, &memory, &end, name, &error));
    memory_close(&memory);
}

static void add_row(const char *file) {
    struct run_row row = {.state = CAIRN_STATE_ENDED};
    snprintf(row.file, sizeof row.file, "%s", file);
    check_error(run_directory_add_row(&store, &row, &error));
}

static void finish(bool is_shared) {
    check_error(run_directory_finish(&store, is_shared, &error));
}

static void test_names(void **state) {
    (void)state;
    begin(NULL);
    char wanted[PATH_MAX];
    snprintf(wanted, sizeof wanted, "%s/prog.7.cairn", place);
    assert_string_equal(store.path, wanted);
    begin("x.cairn");
    begin("x.cairn");
    assert_int_equal(kind_of("x.cairn"), S_IFDIR);
    assert_int_equal(kind_of("x.1.cairn"), S_IFDIR);
    mkdir("there", 0700);
    begin("there/");
    assert_int_equal(kind_of("there/prog.7.cairn"), S_IFDIR);
    assert_false(run_directory_choose(&store, "no/such/x.cairn", "prog", 7, &error));
    assert_false(run_directory_choose(&store, "/dev/null/x.cairn", "prog", 7, &error));
}

// A directory that a run of several processes made is no place for the next run.
static void test_run_without_suffix(void **state) {
    (void)state;
    begin("run");
    save("prog.7.cairn");
    add_row("prog.7.cairn");
    add_row("");
    finish(false);
    assert_int_equal(kind_of("run/index"), S_IFREG);
    begin("run");
    assert_int_equal(kind_of("run/prog.7.cairn"), S_IFREG);
    assert_int_equal(kind_of("run.1"), S_IFDIR);
}

// Somebody takes the name between choosing and making.
static void test_taken_meanwhile(void **state) {
    (void)state;
    check_error(run_directory_choose(&store, "x.cairn", "prog", 7, &error));
    assert_int_equal(mkdir("x.cairn", 0700), 0);
    check_error(run_directory_make(&store, &error));
    assert_int_equal(kind_of("x.1.cairn"), S_IFDIR);
}

static void test_single(void **state) {
    (void)state;
    begin("x.cairn");
    save("prog.7.cairn");
    add_row("prog.7.cairn");
    finish(false);
    assert_int_equal(kind_of("x.cairn"), S_IFREG);
    assert_int_equal(kind_of("x.cairn.save"), 0);
    struct recording recording;
    check_error(recording_open("x.cairn", &recording, &error));
    recording_close(&recording);
}

static size_t lines_of_index(void) {
    FILE *file = fopen("x.cairn/index", "re");
    size_t lines = 0;
    for (int byte; file && (byte = getc(file)) != EOF;) lines += byte == '\n';
    if (file) fclose(file);
    return lines;
}

static void test_several(void **state) {
    (void)state;
    begin("x.cairn");
    save("prog.7.cairn");
    add_row("prog.7.cairn");
    assert_int_equal(kind_of("x.cairn/index"), 0);
    add_row("");
    assert_int_equal(lines_of_index(), 3);
    add_row("");
    assert_int_equal(lines_of_index(), 4);
    finish(false);
    assert_int_equal(kind_of("x.cairn"), S_IFDIR);
    assert_int_equal(lines_of_index(), 4);
}

// A process may still write: the directory stays, and is known as a run.
static void test_shared(void **state) {
    (void)state;
    begin("x.cairn");
    save("prog.7.cairn");
    add_row("prog.7.cairn");
    finish(true);
    assert_int_equal(kind_of("x.cairn/prog.7.cairn"), S_IFREG);
    assert_int_equal(lines_of_index(), 2);
}

static void test_unexpected_file(void **state) {
    (void)state;
    begin("x.cairn");
    save("prog.7.cairn");
    add_row("prog.7.cairn");
    making_write("x.cairn/other.8.cairn", "x", 1);
    finish(false);
    assert_int_equal(kind_of("x.cairn/prog.7.cairn"), S_IFREG);
    assert_int_equal(kind_of("x.cairn/other.8.cairn"), S_IFREG);
    assert_int_equal(lines_of_index(), 2);
}

static void test_nothing(void **state) {
    (void)state;
    begin("x.cairn");
    finish(false);
    assert_int_equal(kind_of("x.cairn"), 0);
    assert_false(store.is_made);
    begin("x.cairn");
    add_row("");  // its file could not be written
    finish(false);
    assert_int_equal(kind_of("x.cairn"), 0);
}

static void test_directory_is_removed(void **state) {
    (void)state;
    begin("x.cairn");
    save("prog.7.cairn");
    add_row("prog.7.cairn");
    assert_int_equal(system("rm -r x.cairn"), 0);
    assert_false(run_directory_finish(&store, false, &error));
}

// Memory of a process that is not as large as usual, since all of it is looked at here.
static void make_small_memory(struct memory *memory) {
    struct rlimit usual, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = (struct rlimit){SMALL_BYTES, usual.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    check_error(memory_make(memory, &error));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_in_range(memory->bytes, 1, SMALL_BYTES);
}

// Sections that overlap or lead outside are not written.
// Tells if a file that a process wrote itself at its end is taken for one.
static bool is_taken(bool has_exit) {
    char path[PATH_MAX];
    struct memory memory;
    begin("left.cairn");
    check_error(memory_make(&memory, &error));
    memcpy(memory.header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    memory.header->version = CAIRN_VERSION;
    memory.header->header_bytes = CAIRN_HEADER_BYTES;
    memory.header->state = CAIRN_STATE_ENDED;
    memory.header->has_exit = has_exit;
    run_directory_path_of(&store, "prog.7.cairn", path, sizeof path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(memory.header, CAIRN_HEADER_BYTES, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    memory_close(&memory);
    check_error(run_directory_take_leftovers(&store, &error));
    return store.row_count == 1;
}

// One that the tool had no memory to pack stays as it is, with its status.
static void test_what_was_not_packed_is_not_taken_again(void **state) {
    (void)state;
    assert_true(is_taken(false));
    assert_false(is_taken(true));
}

static void test_hostile_sections(void **state) {
    (void)state;
    struct memory memory;
    const struct memory_end end = {.is_over = true};
    begin("x.cairn");
    make_small_memory(&memory);
    struct cairn_header *header = memory.header;
    struct cairn_section *section = header->sections;
    header->section_count = 2;
    section[0] = (struct cairn_section){7, 4, 0, memory.bytes, 4096};
    section[1] = (struct cairn_section){5, 32, 0, 4096, 4096};
    assert_false(run_directory_save(&store, &memory, &end, "a.1.cairn", &error));
    section[0] = (struct cairn_section){7, 4, memory.bytes, 4096, 4096};
    assert_false(run_directory_save(&store, &memory, &end, "a.1.cairn", &error));
    header->section_count = UINT32_MAX;
    assert_false(run_directory_save(&store, &memory, &end, "a.1.cairn", &error));
    // all of it claimed, nothing there: no bytes are read or written for that
    header->section_count = 1;
    section[0] = (struct cairn_section){7, 4, CAIRN_HEADER_BYTES, memory.bytes - CAIRN_HEADER_BYTES,
                                        UINT64_MAX};
    check_error(run_directory_save(&store, &memory, &end, "a.1.cairn", &error));
    struct stat status;
    assert_int_equal(stat("x.cairn/a.1.cairn", &status), 0);
    assert_true(status.st_blocks < 1000);
    memory_close(&memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_run_without_suffix),
        TEST(test_taken_meanwhile),
        TEST(test_single),
        TEST(test_several),
        TEST(test_shared),
        TEST(test_unexpected_file),
        TEST(test_nothing),
        TEST(test_what_was_not_packed_is_not_taken_again),
        TEST(test_hostile_sections),
        TEST(test_directory_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
