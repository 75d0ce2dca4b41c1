// SPDX-License-Identifier: Apache-2.0
// Mappings are put to their parts by name, flags and neighbours; nothing is counted twice or lost.
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/sample.h"
#include "tool/watch/rss_parts.h"

#define MIB (UINT64_C(1) << 20)

static struct rss_parts read_text(const char *text, uint64_t stack_limit) {
    struct rss_parts parts;
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(file);
    struct rss_parts_source source = {.pagemap = pagemap_none(), .stack_limit_bytes = stack_limit};
    struct maps smaps;
    maps_open_file(&smaps, file);
    assert_true(rss_parts_read(&smaps, &source, &parts));
    rss_parts_free(&parts);
    maps_close(&smaps);
    return parts;
}

static const char program[] =
    "55e000000000-55e000001000 r-xp 00000000 fe:00 1 /usr/bin/program\n"
    "Rss:                   4 kB\nPss:                   2 kB\nSwap:                  0 kB\n"
    "VmFlags: rd ex mr mw me\n"
    "55e000001000-55e000002000 rw-p 00001000 fe:00 1 /usr/bin/program\nRss: 4 kB\n"
    "VmFlags: rd wr\n"
    // its .bss
    "55e000002000-55e000004000 rw-p 00000000 00:00 0 \nRss: 8 kB\nVmFlags: rd wr ac\n"
    "55e000100000-55e000200000 rw-p 00000000 00:00 0          [heap]\nRss: 1024 kB\nPss: 1024 kB\n"
    "Swap: 12 kB\nAnonHugePages: 512 kB\nVmFlags: rd wr ac\n"
    // an arena of glibc: not reserved, aligned
    "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \nRss: 132 kB\nVmFlags: rd wr nr\n"
    "7f0000021000-7f0004000000 ---p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: mr nr\n"
    // memory of cairn's: not reserved
    "7f1000001000-7f1000401000 rw-p 00000000 00:00 0 \nRss: 2048 kB\nVmFlags: rd wr nr\n"
    "7f2000000000-7f2000001000 ---p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: mr\n"
    "7f2000001000-7f2000801000 rw-p 00000000 00:00 0 \nRss: 16 kB\nVmFlags: rd wr ac\n"
    "7f3000000000-7f3000400000 rw-s 00000000 00:01 9   /memfd:cairn (deleted)\nRss: 512 kB\n"
    "VmFlags: rd wr sh dd\n"
    "7f4000000000-7f4000400000 rw-s 00000000 00:01 9   /dev/zero (deleted)\nRss: 64 kB\n"
    "VmFlags: rd wr sh\n"
    "7f5000000000-7f5000001000 r-xp 00000000 fe:00 2   /a b/libcairn.so\nRss: 4 kB\n"
    "7f6000000000-7f6000002000 rw-p 00000000 fe:00 2   /lib/libc.so.6\nRss: 8 kB\n"
    "7f7000000000-7f7000100000 rw-s 00000000 00:05 7   /dev/dri/card0\nRss: 40 kB\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0   [stack]\nRss: 20 kB\n"
    "7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0   [vdso]\nRss: 8 kB\n";

static void test_parts(void **state) {
    (void)state;
    struct rss_parts parts = read_text(program, 8 * MIB);
    const struct cairn_picture *picture = &parts.picture;
    assert_int_equal(picture->files_bytes, (4 + 4 + 8 + 8) * 1024);
    assert_int_equal(picture->heap_bytes, (1024 + 132 + 2048) * 1024);
    assert_int_equal(picture->stacks_bytes, (16 + 20) * 1024);
    assert_int_equal(picture->huge_bytes, 512 * 1024);
    assert_int_equal(picture->stack_count, 2);
    assert_int_equal(picture->shared_bytes, 64 * 1024);
    assert_int_equal(picture->own_bytes, (512 + 4) * 1024);
    assert_int_equal(picture->other_bytes, (40 + 8) * 1024);
    assert_int_equal(picture->rss_bytes,
                     (4 + 4 + 8 + 1024 + 132 + 2048 + 16 + 512 + 64 + 4 + 8 + 40 + 20 + 8) * 1024);
    assert_int_equal(picture->pss_bytes, 1026 * 1024);
    assert_int_equal(picture->swap_bytes, 12 * 1024);
    assert_int_equal(parts.libc_data.start, 0x7f6000000000);
}

// Address space that is kept for later is no guard of a stack, as that below tables of the JVM's.
static void test_large_guard(void **state) {
    (void)state;
    struct rss_parts parts = read_text(
        "7f200004a000-7f2000050000 ---p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: mr\n"
        "7f2000050000-7f2000801000 rw-p 00000000 00:00 0 \nRss: 6080 kB\nVmFlags: rd wr ac\n"
        "7f300000f000-7f3000010000 ---p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: mr\n"
        "7f3000010000-7f3000810000 rw-p 00000000 00:00 0 \nRss: 16 kB\nVmFlags: rd wr ac\n",
        8 * MIB);
    assert_int_equal(parts.picture.heap_bytes, 6080 * 1024);
    assert_int_equal(parts.picture.stacks_bytes, 16 * 1024);
    assert_int_equal(parts.picture.stack_count, 1);
}

static void test_own_memory(void **state) {
    (void)state;
    struct rss_parts parts = read_text(program, 8 * MIB), limited = parts;
    rss_parts_settle_own(&parts, 64 * MIB);
    assert_int_equal(parts.picture.heap_bytes, (1024 + 132) * 1024);
    assert_int_equal(parts.picture.own_bytes, (512 + 4 + 2048) * 1024);
    // somebody else maps without reservation too: no more is cairn's than it took
    rss_parts_settle_own(&limited, MIB);
    assert_int_equal(limited.picture.heap_bytes, (132 + 2048) * 1024);
    assert_int_equal(limited.picture.own_bytes, (512 + 4 + 1024) * 1024);
}

// Live memory is read later than the mappings: by much, if the machine is busy.
static void test_moment(void **state) {
    (void)state;
    const int64_t mib = 1 << 20;
    assert_true(rss_parts_is_moment(30 * mib, 30 * mib));
    assert_true(rss_parts_is_moment(30 * mib, 33 * mib));
    assert_true(rss_parts_is_moment(0, mib));
    assert_false(rss_parts_is_moment(30 * mib, 3 * mib));
    assert_false(rss_parts_is_moment(3 * mib, 30 * mib));
    assert_false(rss_parts_is_moment(INT64_MIN, INT64_MAX));
}

// Counts the pages of the table of samples that are there; an odd table has none.
static void test_samples(void **state) {
    (void)state;
    enum { PLACES = 1 << 16 };
    const size_t page = (size_t)getpagesize();
    const size_t key_bytes = PLACES * sizeof(uint64_t);
    const size_t bytes = key_bytes + PLACES * sizeof(struct cairn_live_sample);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    struct cairn_live_samples table = {(uintptr_t)memory, (uintptr_t)memory + key_bytes, PLACES};
    memory[0] = memory[5 * page] = memory[key_bytes + 3 * page] = 1;
    assert_int_equal(rss_parts_samples_bytes(getpid(), (uintptr_t)&table), 3 * page);
    assert_int_equal(rss_parts_samples_bytes(getpid(), 0), 0);
    assert_int_equal(rss_parts_samples_bytes(getpid(), 8), 0);
    table.count = UINT64_MAX;
    assert_int_equal(rss_parts_samples_bytes(getpid(), (uintptr_t)&table), 0);
    munmap(memory, bytes);
}

// Memory of this process as the kernel shows it when cairn's lies right below an arena: one
// mapping. In order: 1 MiB of cairn's, a heap that is full, one that is not, of which the rest has
// no access.
static void test_joined_with_arena(void **state) {
    (void)state;
    enum { OWN_BYTES = 1 << 20, SECOND_BYTES = 3 << 20, HEADER_BYTES = 48 };
    const uint64_t heap_bytes = 64 * MIB;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *space = mmap(NULL, 4 * heap_bytes, PROT_NONE, flags, -1, 0);
    assert_ptr_not_equal(space, MAP_FAILED);
    char *first = space + heap_bytes + (heap_bytes - (uintptr_t)space % heap_bytes) % heap_bytes;
    char *second = first + heap_bytes;
    struct rss_parts before, unjoined, after;
    assert_true(rss_parts_of_process(getpid(), &before));
    mprotect(first - OWN_BYTES, OWN_BYTES + heap_bytes + SECOND_BYTES, PROT_READ | PROT_WRITE);
    memset(first - OWN_BYTES, 1, OWN_BYTES);
    memset(first, 1, MIB);
    memset(second, 1, 2 * MIB);
    // nothing that begins as a heap does: cairn's
    assert_true(rss_parts_of_process(getpid(), &unjoined));
    assert_int_equal(unjoined.unreserved_bytes - before.unreserved_bytes, 4 * MIB);
    uint64_t arena = (uintptr_t)first + HEADER_BYTES;
    memcpy(first, (uint64_t[]){arena, 0, heap_bytes, heap_bytes}, 4 * sizeof(uint64_t));
    memcpy(second, (uint64_t[]){arena, (uintptr_t)first, SECOND_BYTES, SECOND_BYTES},
           4 * sizeof(uint64_t));
    assert_true(rss_parts_of_process(getpid(), &after));
    assert_int_equal(after.unreserved_bytes - before.unreserved_bytes, MIB);
    rss_parts_free(&before);
    rss_parts_free(&unjoined);
    rss_parts_free(&after);
    munmap(space, 4 * heap_bytes);
}

// Memory with a name is a category of its own, all mappings of a name one; glibc's names for its
// own heap are none. A share of what is forked is a share of each kind.
static void test_names(void **state) {
    (void)state;
    static const char text[] =
        "7f0000000000-7f0000100000 rw-p 00000000 00:00 0   [anon:pool]\nRss: 100 kB\nPss: 50 kB\n"
        "7f0000200000-7f0000300000 rw-p 00000000 00:00 0   [anon:a b]\nRss: 400 kB\nPss: 400 kB\n"
        "Swap: 8 kB\n"
        "7f0000400000-7f0000500000 rw-p 00000000 00:00 0   [anon:pool]\nRss: 200 kB\nPss: 200 kB\n"
        "7f0000600000-7f0000700000 rw-p 00000000 00:00 0   [anon: glibc: malloc]\nRss: 8 kB\n"
        "7f0000800000-7f0000900000 rw-s 00000000 00:01 3   [anon_shmem:shared]\nRss: 16 kB\n"
        "7f6000000000-7f6000002000 rw-p 00000000 fe:00 2   /lib/libx.so\nRss: 8 kB\nPss: 8 kB\n"
        "Anonymous: 4 kB\n"
        "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0   [stack]\nRss: 20 kB\nPss: 20 kB\n"
        "Anonymous: 20 kB\n";
    struct rss_parts parts;
    struct maps smaps;
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    maps_open_file(&smaps, file);
    assert_true(
        rss_parts_read(&smaps, &(struct rss_parts_source){.pagemap = pagemap_none()}, &parts));
    assert_int_equal(parts.names.count, 2);
    assert_string_equal(parts.names.items[0].name, "a b");
    assert_int_equal(parts.names.items[0].rss_bytes, 400 * 1024);
    assert_int_equal(parts.names.items[0].swap_bytes, 8 * 1024);
    assert_string_equal(parts.names.items[1].name, "pool");
    assert_int_equal(parts.names.items[1].rss_bytes, 300 * 1024);
    assert_int_equal(parts.names.items[1].pss_bytes, 250 * 1024);
    assert_int_equal(parts.picture.heap_bytes, 708 * 1024);
    assert_int_equal(parts.picture.shared_bytes, 16 * 1024);
    assert_int_equal(parts.heap_pss_bytes, 650 * 1024);
    assert_int_equal(parts.stacks_pss_bytes, 20 * 1024);
    assert_int_equal(parts.data_pss_bytes, 4 * 1024);
    rss_parts_free(&parts);
    maps_close(&smaps);
}

// Returns how many bytes a program takes from its first page on, by its program headers.
static uint64_t span_of_program(void) {
    const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = UINT64_MAX, end = 0;
    for (uint64_t i = 0; i < getauxval(AT_PHNUM); i++) {
        if (headers[i].p_type != PT_LOAD) continue;
        if (first == UINT64_MAX) first = headers[i].p_vaddr - headers[i].p_offset;
        end = headers[i].p_vaddr + headers[i].p_memsz;
    }
    return (end - first + page - 1) / page * page;
}

// Zeroed data of a file, with which the kernel joined memory that was mapped behind it: only what
// the file's headers have is its data. This program's first page, one that can be written, and
// memory across its end are mapped once more.
static void test_joined_with_data(void **state) {
    (void)state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), span = span_of_program();
    int file = open("/proc/self/exe", O_RDONLY);
    char *space =
        mmap(NULL, span + 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(file >= 0 && space != MAP_FAILED);
    const uint64_t own = span > 2 * MIB ? MIB : page;  // of its data
    struct rss_parts before, after;
    assert_true(rss_parts_of_process(getpid(), &before));
    const int fixed = MAP_PRIVATE | MAP_FIXED;
    char *first = mmap(space, page, PROT_READ, fixed, file, 0);
    char *data =
        mmap(space + span - own - page, page, PROT_READ | PROT_WRITE, fixed, file, (off_t)page);
    char *memory =
        mmap(data + page, own + 3 * MIB, PROT_READ | PROT_WRITE, fixed | MAP_ANONYMOUS, -1, 0);
    assert_true(first == space && data != MAP_FAILED && memory == data + page);
    assert_int_equal(*(volatile char *)first, ELFMAG0);
    memset(memory, 1, own + 3 * MIB);
    assert_true(rss_parts_of_process(getpid(), &after));
    int64_t grown = (int64_t)(after.picture.heap_bytes - before.picture.heap_bytes);
    // beside the sanitizer's own memory, which grows meanwhile; with the data it were 4 MiB
    assert_in_range(grown, 5 * MIB / 2, 15 * MIB / 4);
    grown = (int64_t)(after.data_pss_bytes - before.data_pss_bytes);
    assert_in_range(grown, own, own + MIB);
    rss_parts_free(&before);
    rss_parts_free(&after);
    munmap(space, span + 4 * MIB);
    close(file);
}

static void test_damage(void **state) {
    (void)state;
    static const char *const texts[] = {"", "hello\n", "12-34\n", "Rss: 5 kB\n",
                                        "zz-zz rw-p 0 0 0 \n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rss_parts parts;
        FILE *file = *texts[i] ? fmemopen((void *)(uintptr_t)texts[i], strlen(texts[i]), "r")
                               : fopen("/dev/null", "r");
        assert_non_null(file);
        struct maps smaps;
        maps_open_file(&smaps, file);
        rss_parts_read(&smaps, &(struct rss_parts_source){.pagemap = pagemap_none()}, &parts);
        assert_int_equal(parts.picture.rss_bytes, 0);
        rss_parts_free(&parts);
        maps_close(&smaps);
    }
}

// The process goes on while its free memory is counted: what it freed meanwhile is not both.
static void test_freed_meanwhile(void **state) {
    (void)state;
    const struct cairn_picture seen = {.live_bytes = 64 * MIB,
                                       .heap_bytes = 66 * MIB,
                                       .arena_count = 9,
                                       .free_chunk_bytes = 60 * MIB,
                                       .free_top_bytes = 1 * MIB,
                                       .free_resident_bytes = 61 * MIB};
    struct cairn_picture picture = seen;
    assert_false(rss_parts_settle_free(&picture, 63 * MIB));
    assert_memory_equal(&picture, &seen, sizeof seen);
    assert_false(rss_parts_settle_free(&picture, 80 * MIB));
    assert_memory_equal(&picture, &seen, sizeof seen);
    assert_true(rss_parts_settle_free(&picture, 4 * MIB));
    assert_int_equal(picture.arena_count, 0);
    assert_int_equal(picture.free_chunk_bytes + picture.free_top_bytes, 0);
    assert_int_equal(picture.free_resident_bytes, 0);
    assert_int_equal(picture.live_bytes, 64 * MIB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_large_guard),
        cmocka_unit_test(test_own_memory), cmocka_unit_test(test_moment),
        cmocka_unit_test(test_samples),    cmocka_unit_test(test_joined_with_arena),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_joined_with_data),
        cmocka_unit_test(test_damage),     cmocka_unit_test(test_freed_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
