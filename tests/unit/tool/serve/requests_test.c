// SPDX-License-Identifier: Apache-2.0
// Paths, numbers and addresses that clients write.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/serve/requests.h"

static void paths(void **state) {
    (void)state;
    static const char *const wrong[] = {"/",      "/pid",     "/pid/",
                                        "/pid/x", "/pid/-1/", "/pid/1x/metrics",
                                        "pid/1/", "/pid//1",  "/pid/12345678901/"};
    pid_t pid = 0;
    const char *path = "/pid/12/metrics";
    assert_true(request_cut_pid(&path, &pid));
    assert_int_equal(pid, 12);
    assert_string_equal(path, "/metrics");
    path = "/pid/4194304";
    assert_true(request_cut_pid(&path, &pid) && pid == 4194304 && !*path);
    path = "/pid/4294967308/";  // not 12
    assert_true(request_cut_pid(&path, &pid) && pid == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        path = wrong[i];
        assert_false(request_cut_pid(&path, &pid));
        assert_ptr_equal(path, wrong[i]);
    }
}

static void seconds(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "x", "-1", "1x", " 1", "3601", "00001", "1.5", "1e3"};
    unsigned value = 1;
    assert_true(request_seconds(NULL, &value) && value == 0);
    assert_true(request_seconds("0", &value) && value == 0);
    assert_true(request_seconds("3600", &value) && value == 3600);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(request_seconds(wrong[i], &value));
}

static void addresses(void **state) {
    (void)state;
    const char *text = "0x7f12+abc 0X1\n ffffffffffffffff+0x+1";
    const char *end = text + strlen(text);
    uint64_t address;
    const uint64_t wanted[] = {0x7f12, 0xabc, 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(request_next_address(&text, end, &address));
        assert_true(address == wanted[i]);
    }
    assert_false(request_next_address(&text, end, &address));
    text = "11111111111111111";
    assert_false(request_next_address(&text, text + strlen(text), &address));
    text = "+ \n";
    assert_false(request_next_address(&text, text + strlen(text), &address));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths), cmocka_unit_test(seconds),
                                       cmocka_unit_test(addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
