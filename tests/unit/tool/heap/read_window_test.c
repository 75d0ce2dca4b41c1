// SPDX-License-Identifier: Apache-2.0
// Bytes of blocks in a core dump: those of its file, whatever was read before and in whichever
// order, up to the end of what it has of a segment.
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

#include "tool/heap/read_window.h"

enum {
    FIRST = 0x100000,
    FIRST_BYTES = 0x8000,
    GAP = 0x1000,
    SECOND = FIRST + FIRST_BYTES + GAP,
    SECOND_BYTES = 0x2345,  // of 0x4000: it was cut off
    FILE_BYTES = FIRST_BYTES + SECOND_BYTES,
    TURNS = 20000,
    MOST = 3 * READ_WINDOW_BYTES,
};

static uint8_t content[FILE_BYTES];
static struct memory_segment segments[2];
static struct core_image core;
static struct read_window window;

static int setup(void **state) {
    (void)state;
    FILE *file = tmpfile();
    if (!file) return -1;
    for (size_t i = 0; i < sizeof content; i++) content[i] = (uint8_t)(i * 7 + i / 251);
    if (fwrite(content, sizeof content, 1, file) != 1 || fflush(file)) return -1;
    int descriptor = dup(fileno(file));
    fclose(file);
    segments[0] = (struct memory_segment){FIRST, FIRST + FIRST_BYTES, 0, FIRST_BYTES, true, false};
    segments[1] =
        (struct memory_segment){SECOND, SECOND + 0x4000, FIRST_BYTES, SECOND_BYTES, true, false};
    core = (struct core_image){
        .source = {.descriptor = descriptor, .size = FILE_BYTES},
        .map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, descriptor, 0),
    };
    core.segments.items = segments;
    core.segments.count = 2;
    return core.map == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state) {
    (void)state;
    read_window_free(&window);
    munmap((void *)(uintptr_t)core.map, FILE_BYTES);
    close(core.source.descriptor);
    return 0;
}

// Where the file has an address, and how much from there on; NULL: it has none.
static const uint8_t *expected(uint64_t address, uint64_t *size) {
    for (int i = 0; i < 2; i++) {
        uint64_t inside = address - segments[i].start;
        if (inside >= segments[i].bytes) continue;
        if (segments[i].bytes - inside < *size) *size = segments[i].bytes - inside;
        return content + segments[i].offset + inside;
    }
    return NULL;
}

static void check(uint64_t address, uint64_t wanted) {
    uint64_t size = wanted, found = wanted;
    const uint8_t *right = expected(address, &size);
    const uint8_t *bytes = read_window_at(&window, &core, address, &found);
    if (!right) {
        assert_null(bytes);
        return;
    }
    assert_non_null(bytes);
    assert_int_equal(found, size);
    assert_memory_equal(bytes, right, size);
}

static void bytes_are_those_of_the_file(void **state) {
    (void)state;
    unsigned seed = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        seed = seed * 1103515245u + 12345u;
        uint64_t address = FIRST - GAP + (seed >> 8) % (FIRST_BYTES + 3 * GAP + 0x4000);
        seed = seed * 1103515245u + 12345u;
        check(address, 1 + (seed >> 8) % (turn % 4 ? 64 : MOST));
    }
}

static void walks_in_either_direction(void **state) {
    (void)state;
    for (uint64_t at = FIRST; at < SECOND + SECOND_BYTES; at += 24) check(at, 24);
    for (uint64_t at = SECOND + SECOND_BYTES; at > FIRST; at -= 24) check(at - 24, 24);
    check(FIRST + 8, READ_WINDOW_BYTES);  // one byte behind its end is in the next window
    check(FIRST + 8 + READ_WINDOW_BYTES - 1, 2);
}

static void of_a_copy_in_memory(void **state) {
    (void)state;
    struct core_image file = core;
    core.source = (struct source){.descriptor = -1, .bytes = content, .size = FILE_BYTES};
    core.map = content;
    bytes_are_those_of_the_file(state);
    core.map = NULL;
    bytes_are_those_of_the_file(state);
    core = file;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_those_of_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(walks_in_either_direction, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_copy_in_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
