// SPDX-License-Identifier: Apache-2.0
// Directories with the files that the kernel shows of cgroups, of both versions.
#include "tool/proc/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[PATH_MAX], inside[PATH_MAX + 16];
static struct error error;

static void write_file(const char *directory, const char *name, const char *text) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state) {
    (void)state;
    char here[PATH_MAX / 2];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(top, sizeof top, "%s/cgroup_test.%d", here, (int)getpid());
    snprintf(inside, sizeof inside, "%s/inside", top);
    assert_int_equal(mkdir(top, 0700), 0);
    assert_int_equal(mkdir(inside, 0700), 0);
    write_file(top, "cgroup.procs", "");
    write_file(inside, "cgroup.procs", "42\n17\n");
    return 0;
}

static void clear(const char *directory) {
    static const char *const names[] = {
        "cgroup.procs",          "memory.current",    "memory.max",
        "memory.events",         "memory.stat",       "memory.usage_in_bytes",
        "memory.limit_in_bytes", "memory.oom_control"};
    char path[2 * PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

static int teardown(void **state) {
    (void)state;
    clear(inside);
    clear(top);
    return 0;
}

static void test_version_2(void **state) {
    (void)state;
    struct cgroup cgroup;
    struct cgroup_memory memory;
    write_file(top, "memory.max", "5000\n");
    write_file(inside, "memory.max", "max\n");
    write_file(inside, "memory.current", "4000\n");
    write_file(inside, "memory.events",
               "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n");
    write_file(inside, "memory.stat", "anon 1\nfile 800\ninactive_file 300\nactive_file 500\n");
    assert_true(cgroup_open(inside, &cgroup, &error));
    assert_false(cgroup.is_old);
    assert_true(cgroup_look(&cgroup, 0, &memory));
    assert_int_equal(memory.used_bytes, 3200);
    assert_int_equal(memory.limit_bytes, 5000);  // of the one above it
    assert_int_equal(memory.kills, 3);
    assert_true(cgroup_look(&cgroup, 4001, &memory));
    assert_int_equal(memory.used_bytes, 4000);  // far from a limit it is not looked at
}

static void test_version_1(void **state) {
    (void)state;
    struct cgroup cgroup;
    struct cgroup_memory memory;
    write_file(inside, "memory.usage_in_bytes", "4000\n");
    write_file(inside, "memory.limit_in_bytes", "9223372036854771712\n");
    write_file(inside, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    write_file(inside, "memory.stat",
               "inactive_file 1\nactive_file 2\ntotal_inactive_file 100\ntotal_active_file 200\n");
    assert_true(cgroup_open(inside, &cgroup, &error));
    assert_true(cgroup.is_old);
    assert_true(cgroup_look(&cgroup, 0, &memory));
    assert_int_equal(memory.used_bytes, 3700);
    assert_true(memory.limit_bytes == UINT64_MAX);
    assert_int_equal(memory.kills, 2);
    write_file(inside, "memory.limit_in_bytes", "6000\n");
    assert_true(cgroup_look(&cgroup, 0, &memory));
    assert_int_equal(memory.limit_bytes, 6000);
    clear(inside);
    assert_false(cgroup_look(&cgroup, 0, &memory));
}

// However a directory is written, it is one cgroup, with one name.
static void test_slashes(void **state) {
    (void)state;
    struct cgroup cgroup;
    char word[sizeof inside + 2];
    snprintf(word, sizeof word, "%s//", inside);
    write_file(inside, "memory.current", "1\n");
    assert_true(cgroup_open(word, &cgroup, &error));
    assert_string_equal(cgroup.path, inside);
}

static void test_processes(void **state) {
    (void)state;
    struct cgroup cgroup;
    struct process_pids list;
    write_file(top, "memory.current", "1\n");
    assert_true(cgroup_open(top, &cgroup, &error));
    assert_true(cgroup_list(&cgroup, &list));
    assert_int_equal(list.pids.count, 2);
    assert_int_equal(list.pids.items[0], 17);
    assert_int_equal(list.pids.items[1], 42);
    assert_true(process_pids_has(&list, 42));
    assert_false(process_pids_has(&list, 18));
    array_free(&list.pids);
}

static void test_no_cgroup(void **state) {
    (void)state;
    struct cgroup cgroup;
    assert_false(cgroup_open("no/such/cgroup", &cgroup, &error));
    assert_non_null(strstr(error.text, "there is no such cgroup"));
    assert_false(cgroup_open("", &cgroup, &error));
    assert_non_null(strstr(error.text, "the path is empty"));
    assert_false(cgroup_open(inside, &cgroup, &error));
    assert_non_null(strstr(error.text, "no cgroup whose memory is accounted for"));
    assert_true(cgroup_find(inside, &cgroup, &error));
    assert_string_equal(cgroup.path, inside);
    assert_int_equal(unlink(strcat(inside, "/cgroup.procs")), 0);
    *strrchr(inside, '/') = 0;
    assert_false(cgroup_find(inside, &cgroup, &error));
    assert_non_null(strstr(error.text, "it has no cgroup.procs"));
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// Lines of /proc/PID/cgroup as runtimes of containers leave them.
static void test_places(void **state) {
    (void)state;
    static const struct {
        const char *text, *path, *container_id, *pod_uid;
    } rows[] = {
        {"0::/\n", "", "", ""},
        {"", "", "", ""},
        {"0::/user.slice/session-2.scope\n", "/user.slice/session-2.scope", "", ""},
        {"0::/system.slice/docker-" ID ".scope\n", "/system.slice/docker-" ID ".scope", ID, ""},
        {"4:cpu:/other\n2:memory:/docker/" ID "\n0::/\n", "/docker/" ID, ID, ""},
        {"0::/kubepods.slice/kubepods-pod11112222_3333_4444_5555_666677778888.slice/crio-" ID
         ".scope\n",
         "/kubepods.slice/kubepods-pod11112222_3333_4444_5555_666677778888.slice/crio-" ID ".scope",
         ID, "11112222-3333-4444-5555-666677778888"},
        {"3:memory:/kubepods/besteffort/pod11112222-3333-4444-5555-666677778888/" ID "\n",
         "/kubepods/besteffort/pod11112222-3333-4444-5555-666677778888/" ID, ID,
         "11112222-3333-4444-5555-666677778888"},
        {"0::/docker/" ID "0\n", "/docker/" ID "0", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cgroup_place place;
        cgroup_place_read(rows[i].text, &place);
        assert_string_equal(place.path, rows[i].path);
        assert_string_equal(place.container_id, rows[i].container_id);
        assert_string_equal(place.pod_uid, rows[i].pod_uid);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_version_2, setup, teardown),
        cmocka_unit_test_setup_teardown(test_version_1, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slashes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_cgroup, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
