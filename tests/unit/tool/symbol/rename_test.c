// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/symbol/rename.h"

static void check(const char *rule, const char *name, const char *wanted) {
    struct rename_rules *rules = NULL;
    struct error error = {""};
    if (!rename_rules_add(&rules, rule, &error)) fail_msg("%s: %s", rule, error.text);
    char *renamed = rename_apply(rules, name);
    assert_string_equal(renamed, wanted);
    free(renamed);
    rename_rules_free(rules);
}

static void every_match_is_replaced(void **state) {
    (void)state;
    check("s/foo/bar/", "foo::foo", "bar::bar");
    check("s/foo/bar/g", "a", "a");
    check("s|^a::||", "a::a::b", "a::b");
    check("s/x*/-/", "axb", "-a-b-");
    check("s/$/!/", "end", "end!");
}

static void groups_and_the_whole_can_be_used(void **state) {
    (void)state;
    check("s/(\\w+)::(\\w+)/\\2 of \\1/", "shop::sell", "sell of shop");
    check("s/sell/[&]/", "shop::sell", "shop::[sell]");
    check("s/sell/\\&/", "shop::sell", "shop::&");
    check("s/a|(b)/<\\1>/", "ab", "<><b>");
    check("s,a\\,b,x,", "a,b", "x");
}

static void check_wrong(const char *rule, const char *part) {
    struct rename_rules *rules = NULL;
    struct error error = {""};
    assert_false(rename_rules_add(&rules, rule, &error));
    if (!strstr(error.text, part)) fail_msg("%s: \"%s\" lacks \"%s\"", rule, error.text, part);
    rename_rules_free(rules);
}

static void wrong_rules_are_refused(void **state) {
    (void)state;
    check_wrong("s/a", "no rule");
    check_wrong("s/a/b", "no rule");
    check_wrong("s//b/", "no rule");
    check_wrong("s/a/b/x", "no rule");
    check_wrong("s/(/b/", "(");
    check_wrong("/nonexistent/rules", "/nonexistent/rules: ");
}

static void a_file_has_a_rule_a_line(void **state) {
    (void)state;
    char path[] = "/tmp/cairn-rename-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    const char text[] = "# comment\n\n  s/a/b/\ns/b/c/\n";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    check(path, "a", "c");
    assert_int_equal(write(file, "what\n", 5), 5);
    check_wrong(path, ":5: ");
    close(file);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_match_is_replaced),
        cmocka_unit_test(groups_and_the_whole_can_be_used),
        cmocka_unit_test(wrong_rules_are_refused),
        cmocka_unit_test(a_file_has_a_rule_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
