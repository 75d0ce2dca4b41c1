// SPDX-License-Identifier: Apache-2.0
// Open files in the page cache: this program's own, and which are left alone, by what /proc says.
#include "tool/proc/cached_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 300000, LEAST_BYTES = 100000 };

struct found {
    const char *name;
    uint64_t bytes;
    unsigned count;
};

static void note(void *context, const struct cached_file *file) {
    struct found *found = context;
    if (!strstr(file->name, found->name)) return;
    found->bytes = file->bytes;
    found->count++;
}

static void test_own_file(void **state) {
    (void)state;
    static const char bytes[BYTES];
    char name[64];
    snprintf(name, sizeof name, "cached_files_test.%d", (int)getpid());
    int file = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, sizeof bytes), sizeof bytes);
    struct found found = {.name = name};
    bool is_known = cached_files_of(getpid(), LEAST_BYTES, note, &found);
    struct found none = {.name = name};
    cached_files_of(getpid(), BYTES + 1, note, &none);
    close(file);
    unlink(name);
    assert_int_equal(none.count, 0);
    if (!is_known || !found.count) skip();  // an older kernel, or a file system of another machine
    assert_int_equal(found.count, 1);
    assert_in_range(found.bytes, BYTES, BYTES + 65536);
}

static void test_no_process(void **state) {
    (void)state;
    struct found found = {.name = ""};
    assert_false(cached_files_of(-1, 0, note, &found));
}

static void test_lease(void **state) {
    (void)state;
    static const char start[] = "pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t7\n";
    char text[256];
    assert_false(cached_files_has_lease(start));
    snprintf(text, sizeof text, "%slock:\t1: FLOCK  ADVISORY  WRITE 1 fe:00:7 0 EOF\n", start);
    assert_false(cached_files_has_lease(text));
    snprintf(text, sizeof text,
             "%slock:\t1: FLOCK  ADVISORY  WRITE 1 fe:00:7 0 EOF\n"
             "lock:\t2: LEASE  ACTIVE    WRITE 1 fe:00:7 0 EOF\n",
             start);
    assert_true(cached_files_has_lease(text));
}

static void test_remote(void **state) {
    (void)state;
    static const char mounts[] = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
                                 "23 22 0:5 / /net rw shared:2 - nfs4 host:/x rw,vers=4.2\n"
                                 "24 22 0:6 / /a\\040-\\040b rw - fuse.sshfs a: rw\n"
                                 "225 22 0:7 / /run rw - tmpfs tmpfs rw\n";
    assert_false(cached_files_is_remote(mounts, 22));
    assert_true(cached_files_is_remote(mounts, 23));
    assert_true(cached_files_is_remote(mounts, 24));
    assert_false(cached_files_is_remote(mounts, 225));
    assert_true(cached_files_is_remote(mounts, 2));
    assert_true(cached_files_is_remote("", 22));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_file),
                                       cmocka_unit_test(test_no_process),
                                       cmocka_unit_test(test_lease), cmocka_unit_test(test_remote)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
