// SPDX-License-Identifier: Apache-2.0
// Directories with the files that kernels show of a cgroup's memory: its parts add up to what it
// uses, none is counted twice, and what a kernel does not tell is not made up.
#include "tool/proc/cgroup_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static const char *const files[] = {"cgroup.procs",
                                    "memory.current",
                                    "memory.max",
                                    "memory.events",
                                    "memory.stat",
                                    "memory.swap.current",
                                    "hugetlb.2MB.current",
                                    "hugetlb.2MB.rsvd.current",
                                    "memory.usage_in_bytes",
                                    "memory.limit_in_bytes",
                                    "memory.oom_control",
                                    "memory.kmem.usage_in_bytes",
                                    "memory.kmem.tcp.usage_in_bytes",
                                    "cgroup.sane_behavior"};

static struct cgroup cgroup;

static void write_file(const char *name, const char *text) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", cgroup.path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state) {
    (void)state;
    char here[PATH_MAX / 2];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(cgroup.path, sizeof cgroup.path, "%s/cgroup_memory_test.%d", here, (int)getpid());
    assert_int_equal(mkdir(cgroup.path, 0700), 0);
    write_file("cgroup.procs", "");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char path[2 * PATH_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", cgroup.path, files[i]);
        unlink(path);
    }
    return rmdir(cgroup.path);
}

// Returns what is left over: on a machine with many processors it may be charged ahead.
static uint64_t rest_of(const struct cgroup_parts *parts) {
    return parts->bytes[CGROUP_AHEAD] + parts->bytes[CGROUP_NOT_KNOWN];
}

static struct cgroup_parts read_parts(void) {
    struct cgroup_parts parts;
    struct error error;
    assert_true(cgroup_open(cgroup.path, &cgroup, &error));
    assert_true(cgroup_parts_read(&cgroup, &parts));
    uint64_t sum = 0;
    for (int part = 0; part < CGROUP_PARTS; part++) sum += parts.bytes[part];
    assert_int_equal(sum, parts.used_bytes + parts.over_bytes);
    return parts;
}

// Linux 6.6: shared memory and pages that are swapped out too are in "file", and the kernel's
// memory has a sum.
static void test_version_2(void **state) {
    (void)state;
    write_file("memory.current", "1000000\n");
    write_file("memory.max", "2000000\n");
    write_file("memory.events", "oom_kill 1\n");
    write_file("memory.swap.current", "777\n");
    write_file("hugetlb.2MB.current", "4194304\n");
    write_file("hugetlb.2MB.rsvd.current", "8388608\n");
    write_file("memory.stat",
               "anon 300000\nfile 400000\nkernel 150000\nkernel_stack 16000\npagetables 8000\n"
               "sec_pagetables 0\npercpu 2000\nsock 20000\nvmalloc 4000\nshmem 100000\nzswap 0\n"
               "zswapped 0\nfile_mapped 5000\nfile_dirty 0\nswapcached 50000\nanon_thp 200000\n"
               "slab_reclaimable 60000\nslab_unreclaimable 40000\nslab 100000\n");
    struct cgroup_parts parts = read_parts();
    assert_int_equal(parts.bytes[CGROUP_ANONYMOUS], 300000);
    assert_int_equal(parts.bytes[CGROUP_FILES], 250000);
    assert_int_equal(parts.bytes[CGROUP_SHARED], 100000);
    assert_int_equal(parts.bytes[CGROUP_SLAB], 100000);
    assert_int_equal(parts.bytes[CGROUP_KERNEL_STACKS], 16000);
    assert_int_equal(parts.bytes[CGROUP_KERNEL], 150000 - 130000);
    assert_int_equal(parts.bytes[CGROUP_SOCKETS], 20000);
    assert_int_equal(rest_of(&parts), 1000000 - 820000);
    assert_false(parts.is_told[CGROUP_HUGETLB]);
    assert_int_equal(parts.beside_hugetlb_bytes, 4 * MIB);
    assert_int_equal(parts.huge_bytes, 200000);
    assert_true(parts.has_swap);
    assert_int_equal(parts.swap_bytes, 777);
    assert_int_equal(parts.limit_bytes, 2000000);
    assert_int_equal(parts.kills, 1);
    assert_int_equal(parts.over_bytes, 0);
}

// Huge pages of hugetlbfs that are a part of memory are not beside it, too.
static void test_accounted_hugetlb(void **state) {
    (void)state;
    write_file("memory.current", "5000000\n");
    write_file("hugetlb.2MB.current", "4194304\n");
    write_file("memory.stat", "anon 5000\nfile 0\nshmem 0\nhugetlb 4194304\n");
    struct cgroup_parts parts = read_parts();
    assert_int_equal(parts.bytes[CGROUP_HUGETLB], 4 * MIB);
    assert_int_equal(parts.beside_hugetlb_bytes, 0);
}

// Before Linux 5.18 there is no sum of the kernel's memory: the rest of it is not known. What is
// late in memory.current is told, and no part is negative.
static void test_older_version_2(void **state) {
    (void)state;
    write_file("memory.current", "100000\n");
    write_file("memory.stat", "anon 30000\nfile 20000\nkernel_stack 4000\nslab 10000\nsock 0\n"
                              "shmem 90000\n");
    struct cgroup_parts parts = read_parts();
    assert_int_equal(parts.bytes[CGROUP_FILES], 0);
    assert_false(parts.is_told[CGROUP_KERNEL]);
    assert_false(parts.is_told[CGROUP_PER_CPU]);
    assert_false(parts.has_swap);
    assert_int_equal(parts.over_bytes, 34000);
    assert_int_equal(parts.bytes[CGROUP_NOT_KNOWN], 0);
    assert_true(parts.limit_bytes == UINT64_MAX);
}

// Slab is counted by object and the kernel's sum by page: no part is more than is left.
static void test_slab_beyond_sum(void **state) {
    (void)state;
    write_file("memory.current", "100000\n");
    write_file("memory.stat", "anon 0\nfile 0\nshmem 0\nkernel 5000\nslab 6000\npercpu 100\n");
    struct cgroup_parts parts = read_parts();
    assert_int_equal(parts.bytes[CGROUP_SLAB], 5000);
    assert_int_equal(parts.bytes[CGROUP_PER_CPU], 0);
    assert_int_equal(parts.bytes[CGROUP_KERNEL], 0);
}

static void write_version_1(void) {
    write_file("memory.usage_in_bytes", "1000000\n");
    write_file("memory.limit_in_bytes", "9223372036854771712\n");
    write_file("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    write_file("memory.kmem.usage_in_bytes", "150000\n");
    write_file("memory.kmem.tcp.usage_in_bytes", "3000\n");
    write_file("memory.stat", "cache 1\nrss 1\ntotal_cache 500000\ntotal_rss 300000\n"
                              "total_rss_huge 100000\ntotal_shmem 200000\ntotal_swap 99\n"
                              "total_swapcached 1000\n");
}

// Version 1 has the kernel's memory as one sum, and TCP apart.
static void test_version_1(void **state) {
    (void)state;
    write_version_1();
    struct cgroup_parts parts = read_parts();
    assert_true(cgroup.is_old);
    assert_int_equal(parts.bytes[CGROUP_ANONYMOUS], 300000);
    assert_int_equal(parts.bytes[CGROUP_FILES], 299000);
    assert_int_equal(parts.bytes[CGROUP_SHARED], 200000);
    assert_int_equal(parts.bytes[CGROUP_KERNEL], 150000);
    assert_false(parts.is_told[CGROUP_SLAB]);
    assert_int_equal(rest_of(&parts), 51000);
    assert_int_equal(parts.beside_sockets_bytes, 3000);
    assert_int_equal(parts.swap_bytes, 99);
    assert_int_equal(parts.kills, 2);
}

// At the root of a hierarchy the kernel's memory is not within what is used.
static void test_root_of_version_1(void **state) {
    (void)state;
    write_version_1();
    write_file("cgroup.sane_behavior", "0\n");
    struct cgroup_parts parts = read_parts();
    assert_false(parts.is_told[CGROUP_KERNEL]);
    assert_int_equal(parts.beside_kernel_bytes, 150000);
    assert_int_equal(rest_of(&parts), 201000);
}

// A page may be charged ahead, a tebibyte not; and nothing is said to be where the kernel's memory
// is not told.
static void test_ahead(void **state) {
    (void)state;
    write_file("memory.current", "104096\n");
    write_file("memory.stat", "anon 100000\nfile 0\nshmem 0\nkernel 0\n");
    struct cgroup_parts parts = read_parts();
    assert_int_equal(parts.bytes[CGROUP_AHEAD], 4096);
    assert_int_equal(parts.bytes[CGROUP_NOT_KNOWN], 0);
    write_file("memory.current", "1099511727776\n");
    parts = read_parts();
    assert_int_equal(parts.bytes[CGROUP_AHEAD], 0);
    assert_int_equal(parts.bytes[CGROUP_NOT_KNOWN], UINT64_C(1) << 40);
    write_file("memory.current", "104096\n");
    write_file("memory.stat", "anon 100000\nfile 0\nshmem 0\n");
    parts = read_parts();
    assert_false(parts.is_told[CGROUP_AHEAD]);
    assert_int_equal(parts.bytes[CGROUP_NOT_KNOWN], 4096);
}

// Files that anybody wrote: no number makes a sum wrap.
static void test_absurd(void **state) {
    (void)state;
    write_file("memory.current", "9223372036854775807\n");
    write_file("memory.events", "oom_kill 18446744073709551615\n");
    write_file("memory.stat", "anon 18446744073709551615\nfile 18446744073709551615\n"
                              "kernel 18446744073709551615\nslab -5\nsock 99999999999999999999\n"
                              "shmem 7 8\n");
    struct cgroup_parts parts = read_parts();
    for (int part = 0; part < CGROUP_PARTS; part++)
        assert_true(parts.bytes[part] <= UINT64_C(1) << 56);
    assert_true(parts.used_bytes + parts.over_bytes < INT64_MAX && parts.kills < INT64_MAX);
}

static void test_gone(void **state) {
    (void)state;
    struct cgroup_parts parts;
    cgroup.is_old = false;
    assert_false(cgroup_parts_read(&cgroup, &parts));
    write_file("memory.stat", "anon 1\n");
    assert_false(cgroup_parts_read(&cgroup, &parts));
}

// A path that is no cgroup with memory is refused with what to do.
static void test_reasons(void **state) {
    (void)state;
    struct cgroup found;
    struct error error;
    write_file("memory.stat", "anon 1\n");
    assert_false(cgroup_open(cgroup.path, &found, &error));
    assert_non_null(strstr(error.text, "the root of version 2"));
    assert_non_null(strstr(error.text, "name one below it"));
}

static void test_words(void **state) {
    (void)state;
    for (int part = 0; part < CGROUP_PARTS; part++) {
        assert_non_null(cgroup_part_key((enum cgroup_part)part));
        assert_non_null(cgroup_part_text((enum cgroup_part)part, true));
        assert_non_null(cgroup_part_text((enum cgroup_part)part, false));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_version_2),
                                       TEST(test_accounted_hugetlb),
                                       TEST(test_older_version_2),
                                       TEST(test_slab_beyond_sum),
                                       TEST(test_version_1),
                                       TEST(test_root_of_version_1),
                                       TEST(test_ahead),
                                       TEST(test_absurd),
                                       TEST(test_gone),
                                       TEST(test_reasons),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
