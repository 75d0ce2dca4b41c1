// SPDX-License-Identifier: Apache-2.0
// Tokens, and names by which a client may call the server.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/serve/access.h"

static void tokens(void **state) {
    (void)state;
    const struct access_rule rule = {.token = "0123456789abcdef"}, none = {.token = ""};
    static const char *const right[] = {"Bearer 0123456789abcdef", "bearer  0123456789abcdef",
                                        "Basic eDowMTIzNDU2Nzg5YWJjZGVm",
                                        "Basic OjAxMjM0NTY3ODlhYmNkZWY="};
    static const char *const wrong[] = {"",
                                        "Bearer",
                                        "Bearer ",
                                        "Bearer 0123456789abcde",
                                        "Bearer 0123456789abcdeg",
                                        "Bearer 0123456789abcdef0",
                                        "Bearer 0123456789abcdef0123456789abcdef",
                                        "0123456789abcdef",
                                        "Basic ",
                                        "Basic ====",
                                        "Basic eA==",
                                        "Basic MDEyMzQ1Njc4OWFiY2RlZg==",
                                        "Digest x"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_true(access_is_allowed(&rule, right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(access_is_allowed(&rule, wrong[i]));
    assert_false(access_is_allowed(&rule, NULL));
    assert_true(access_is_allowed(&none, NULL));
    char large[5000] = "Bearer ";
    memset(large + strlen(large), 'x', sizeof large - strlen(large) - 1);
    large[sizeof large - 1] = 0;
    assert_false(access_is_allowed(&rule, large));
}

static void hosts(void **state) {
    (void)state;
    const struct access_rule rule = {.token = ""}, with_token = {.token = "x"},
                             local = {.is_unix = true};
    static const char *const right[] = {"localhost", "LOCALHOST:80", "127.0.0.1",  "10.1.2.3:6060",
                                        "[::1]",     "[::1]:80",     "[fe80::1]:0"};
    static const char *const wrong[] = {
        "",           "evil.example",      "localhost.evil.example", "127.0.0.1.x", "[::1",
        "[::1].x:80", "[evil.example]:80", "127.0.0.1:80:80",        "localhost:x"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_true(access_host_is_right(&rule, right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(access_host_is_right(&rule, wrong[i]));
        assert_true(access_host_is_right(&with_token, wrong[i]));
        assert_true(access_host_is_right(&local, wrong[i]));
    }
    assert_true(access_host_is_right(&rule, NULL));
}

static bool read_token(struct access_rule *rule, const char *text) {
    char path[] = "/tmp/cairn-token-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    bool is_ok = access_read_token(rule, path, NULL);
    unlink(path);
    return is_ok;
}

static void files(void **state) {
    (void)state;
    struct access_rule rule = {.token = ""};
    assert_true(read_token(&rule, "0123456789abcdef\r\nsecond line"));
    assert_string_equal(rule.token, "0123456789abcdef");
    assert_false(read_token(&rule, "0123456789abcde\n"));
    assert_false(read_token(&rule, "0123456789 abcdef\n"));
    assert_false(read_token(&rule, "0123456789\xffxxabcdef\n"));
    assert_false(read_token(&rule, ""));
    assert_false(access_read_token(&rule, "/no/such/file", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens), cmocka_unit_test(hosts),
                                       cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
