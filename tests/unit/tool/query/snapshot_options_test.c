// SPDX-License-Identifier: Apache-2.0
#include "tool/query/snapshot_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tool/cmds/commands.h"

static struct snapshot_request request;
static struct error error;

// Of `cairn report` with these words behind it.
static bool read_words(const char *first, const char *second) {
    static struct command_args args;
    static char words[3][64];
    char *list[] = {words[0], words[1], words[2], NULL};
    int count = 1 + (first != NULL) + (second != NULL), status;
    snprintf(words[0], sizeof words[0], "report");
    snprintf(words[1], sizeof words[1], "%s", first ? first : "");
    snprintf(words[2], sizeof words[2], "%s", second ? second : "");
    list[count] = NULL;
    assert_true(command_parse(command_find("report"), count, list, &args, &status));
    return snapshot_options_read(&args, &request, &error);
}

static void check_refused(const char *first, const char *second, const char *said) {
    assert_false(read_words(first, second));
    if (!strstr(error.text, said)) fail_msg("\"%s\" does not say \"%s\"", error.text, said);
}

static void test_each_option_asks_for_its_kind(void **state) {
    (void)state;
    assert_true(read_words(NULL, NULL));
    assert_int_equal(request.kind, SNAPSHOT_WANTED_NONE);
    assert_true(read_words("--at=10s", NULL));
    assert_int_equal(request.kind, SNAPSHOT_WANTED_AT);
    assert_string_equal(request.text, "10s");
    assert_true(read_words("--between=1s,exit", NULL));
    assert_int_equal(request.kind, SNAPSHOT_WANTED_BETWEEN);
    assert_true(read_words("--since=warm", "--depth=3"));
    assert_int_equal(request.kind, SNAPSHOT_WANTED_SINCE);
    assert_string_equal(request.text, "warm");
}

static void test_half_a_pair_is_refused(void **state) {
    (void)state;
    check_refused("--between=1s", NULL, "two snapshots with a comma between them");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_option_asks_for_its_kind),
        cmocka_unit_test(test_half_a_pair_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
