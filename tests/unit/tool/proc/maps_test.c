// SPDX-License-Identifier: Apache-2.0
// The parser of /proc/PID/maps and smaps, and which mappings may hold a heap.
#include "tool/proc/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/heap/image.h"

static void open_text(struct maps *maps, const char *text) {
    FILE *file = fmemopen((char *)text, strlen(text), "r");
    assert_non_null(file);
    maps_open_file(maps, file);
}

static struct extents read_text(const char *text) {
    struct extents extents = {0};
    struct maps maps;
    open_text(&maps, text);
    assert_true(extents_read(&maps, &extents));
    maps_close(&maps);
    return extents;
}

static void check(const struct extents *extents, size_t index, uint64_t start, uint64_t end,
                  enum extent_kind kind) {
    assert_int_equal(extents->items.items[index].start, start);
    assert_int_equal(extents->items.items[index].end, end);
    assert_int_equal(extents->items.items[index].kind, kind);
}

static void test_kinds(void **state) {
    (void)state;
    struct extents extents =
        read_text("55d0a0000000-55d0a0001000 r-xp 00000000 fe:00 123 /usr/bin/a program\n"
                  "55d0a0003000-55d0a0004000 rw-p 00003000 fe:00 123 /usr/bin/a program\n"
                  "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0   [heap]\n"
                  "7f4490000000-7f4490021000 rw-p 00000000 00:00 0 \n"
                  "7f4490021000-7f4494000000 ---p 00000000 00:00 0 \n"
                  "7f4495000000-7f4496000000 rw-p 00000000 00:00 0   [anon: named]\n"
                  "7f4497000000-7f4498000000 rw-s 00000000 00:01 77  /memfd:cairn (deleted)\n"
                  "7f4498000000-7f4498001000 rw-s 00000000 00:01 78  /dev/zero (deleted)\n"
                  "7f4498001000-7f4498002000 rw-p 00000000 00:06 78  /dev/device\n"
                  "7f4498002000-7f4498003000 rw-s 00000000 fe:00 79  /srv/a file\n"
                  "7f4498003000-7f4498004000 r--p 00000000 00:00 0 \n"
                  "7f4498004000-7f4498005000 r-xp 00000000 00:00 0 \n"
                  "7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0   [stack]\n"
                  "7ffe00100000-7ffe00102000 r-xp 00000000 00:00 0   [vdso]\n");
    assert_int_equal(extents.items.count, 9);
    check(&extents, 0, 0x55d0a0000000, 0x55d0a0001000, EXTENT_CONSTANT);
    check(&extents, 1, 0x55d0a0003000, 0x55d0a0004000, EXTENT_DATA);
    assert_int_equal(extents.items.items[1].offset, 0x3000);
    check(&extents, 2, 0x55d0c0a00000, 0x55d0c0a21000, EXTENT_BREAK);
    check(&extents, 3, 0x7f4490000000, 0x7f4490021000, EXTENT_MEMORY);
    check(&extents, 4, 0x7f4495000000, 0x7f4496000000, EXTENT_MEMORY);
    check(&extents, 5, 0x7f4497000000, 0x7f4498000000, EXTENT_OTHER);
    check(&extents, 6, 0x7f4498000000, 0x7f4498001000, EXTENT_OTHER);
    check(&extents, 7, 0x7f4498003000, 0x7f4498004000, EXTENT_OTHER);
    check(&extents, 8, 0x7ffe00000000, 0x7ffe00021000, EXTENT_OTHER);
    assert_true(extents.items.items[0].is_code);
    assert_false(extents.items.items[1].is_code);
    array_free(&extents.items);
}

// Heaps of arenas, which begin at multiples of 64 MiB, are one with what they took after a fork;
// other neighbours, code and larger address space stay apart.
static void test_neighbours(void **state) {
    (void)state;
    struct extents extents = read_text("7f0500001000-7f0500002000 rw-p 00000000 00:00 0 \n"
                                       "7f0500002000-7f0500003000 rw-p 00000000 00:00 0 \n"
                                       "7f05a8000000-7f05a8021000 rw-p 00000000 00:00 0 \n"
                                       "7f05a8021000-7f05a8027000 rw-p 00000000 00:00 0 \n"
                                       "7f05a8027000-7f05a8028000 rwxp 00000000 00:00 0 \n"
                                       "7f05a8028000-7f15a8028000 rw-p 00000000 00:00 0 \n"
                                       "7f25a8028000-7f25a8029000 rw-p 00000000 00:00 0 \n");
    assert_int_equal(extents.items.count, 6);
    check(&extents, 2, 0x7f05a8000000, 0x7f05a8027000, EXTENT_MEMORY);
    check(&extents, 3, 0x7f05a8027000, 0x7f05a8028000, EXTENT_MEMORY);
    check(&extents, 4, 0x7f05a8028000, 0x7f15a8028000, EXTENT_MEMORY);
    array_free(&extents.items);
}

// A heap that grew between two reads of the file stands there twice; a flag of smaps says what is
// locked.
static void test_grown_between_pieces(void **state) {
    (void)state;
    struct maps maps;
    struct mapping mapping;
    open_text(&maps, "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0   [heap]\n"
                     "Rss:                 132 kB\nVmFlags: rd wr mr mw me lo ac \n"
                     "55d0c0a00000-55d0c0b00000 rw-p 00000000 00:00 0   [heap]\n"
                     "Rss:                1024 kB\nVmFlags: rd wr mr mw me ac \n"
                     "7f4490000000-7f4490021000 rw-p 00000000 00:00 0 \n"
                     "Rss:                   4 kB\nVmFlags: rd wr mr mw me ac \n");
    assert_true(maps_next(&maps, &mapping));
    assert_int_equal(mapping.rss_bytes, 132 * 1024);
    assert_true(maps_next(&maps, &mapping));
    assert_int_equal(mapping.start, 0x7f4490000000);
    assert_false(maps_next(&maps, &mapping));
    maps_close(&maps);
}

static void test_hidden(void **state) {
    (void)state;
    static const char text[] = "7f4490000000-7f4490021000 rw-p 00000000 00:00 0 \n"
                               "Size:                132 kB\n"
                               "Anonymous:             0 kB\n"
                               "VmFlags: rd wr mr mw me dd ac \n"
                               "7f4490021000-7f4490022000 rw-p 00000000 00:00 0 \n"
                               "Anonymous:             4 kB\n"
                               "VmFlags: rd wr mr mw me ac \n"
                               "7f4490022000-7f4490023000 rw-p 00000000 00:00 0 \n"
                               "VmFlags: rd dd \n";
    static const bool are_undumped[] = {true, false, true};
    struct maps maps;
    struct mapping mapping;
    open_text(&maps, text);
    for (size_t i = 0; i < sizeof are_undumped / sizeof *are_undumped; i++) {
        assert_true(maps_next(&maps, &mapping));
        assert_int_equal(mapping.is_undumped, are_undumped[i]);
        if (!i) assert_int_equal(mapping.start, 0x7f4490000000);
        if (!i) assert_int_equal(mapping.end, 0x7f4490021000);
    }
    assert_int_equal(mapping.start, 0x7f4490022000);
    assert_false(maps_next(&maps, &mapping));
    assert_false(maps.is_odd);
    maps_close(&maps);
}

static void test_files(void **state) {
    (void)state;
    static const char text[] =
        "55d0a0000000-55d0a0001000 r--p 00000000 fe:00 123 /usr/bin/a program\n"
        "55d0a0001000-55d0a0002000 r-xp 00001000 fe:00 123 /usr/bin/a program\n"
        "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0   [heap]\n"
        "7f4490000000-7f4490021000 r--p 00002000 fe:00 124 /lib/b.so\n";
    struct core_image core = {.source.descriptor = -1};
    struct maps maps;
    open_text(&maps, text);
    assert_true(core_read_mapped_files(&core, &maps));
    maps_close(&maps);
    assert_int_equal(core.files.count, 3);
    assert_string_equal(core.files.items[0].path, "/usr/bin/a program");
    assert_ptr_equal(core.files.items[0].path, core.files.items[1].path);
    assert_string_equal(core.files.items[2].path, "/lib/b.so");
    assert_int_equal(core.files.items[2].offset, 0x2000);
    core_close(&core);
}

static void test_odd_lines(void **state) {
    (void)state;
    struct extents extents = read_text("no line of maps\n\n12-\nx-y rw-p 0 0 0 \n");
    assert_int_equal(extents.items.count, 0);
    array_free(&extents.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grown_between_pieces),
                                       cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_neighbours),
                                       cmocka_unit_test(test_hidden),
                                       cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_odd_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
