// SPDX-License-Identifier: Apache-2.0
// Each row of the table refuses what it says, in each command that has both options, and nothing
// else.
#include "tool/query/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/cmds/commands.h"

static struct error error;

static const struct option_row *row_of(const struct command *command, int which) {
    return which < OPTION_COUNT ? option_row_of(command, (enum option_id)which) : NULL;
}

// A command line with these options, CIRCUMSTANCE_END: none.
static struct command_args with(const struct command *command, int first, int second) {
    struct command_args args = {.command = command};
    if (first < OPTION_COUNT) args.values[first] = "1";
    if (second < OPTION_COUNT) args.values[second] = "1";
    return args;
}

static void check_text(const char *form, const char *first, const char *second) {
    char expected[256];
    snprintf(expected, sizeof expected, form, first, second);
    if (!strstr(error.text, expected)) fail_msg("\"%s\" is not in \"%s\"", expected, error.text);
}

static void check_pair(const struct command *command, int first, int second) {
    const struct option_row *one = row_of(command, first), *other = row_of(command, second);
    struct command_args args = with(command, first, second);
    if (one && other) {
        assert_false(options_check(&args, &error));
        check_text("--%s and --%s exclude each other", one->name, other->name);
    } else if (first >= OPTION_COUNT && other) {
        assert_true(options_check(&args, &error));
        assert_false(options_check_under(&args, (enum circumstance)first, &error));
        check_text("%s and --%s exclude each other", circumstance_name(first), other->name);
    } else if (one && second >= OPTION_COUNT) {
        assert_true(options_check(&args, &error));
        assert_false(options_check_under(&args, (enum circumstance)second, &error));
        check_text("--%s and %s exclude each other", one->name, circumstance_name(second));
    }
}

static void test_pairs(void **state) {
    (void)state;
    for (const struct command *const *each = commands; *each; each++)
        for (const struct option_rule *rule = option_rules; rule->others; rule++)
            for (const int *other = rule->others; *other != CIRCUMSTANCE_END; other++)
                if (!rule->is_needed) check_pair(*each, rule->subject, *other);
}

static void check_needed(const struct command *command, const struct option_rule *rule) {
    const struct option_row *row = row_of(command, rule->subject);
    struct command_args args = with(command, rule->subject, CIRCUMSTANCE_END);
    for (const int *other = rule->others; row && *other != CIRCUMSTANCE_END; other++) {
        if (*other < OPTION_COUNT) {
            struct command_args both = with(command, rule->subject, *other);
            assert_true(options_check_without(&both, SAMPLED, &error));
            assert_true(options_check(&both, &error));
            continue;
        }
        assert_true(options_check(&args, &error));
        assert_true(options_check_under(&args, (enum circumstance) * other, &error));
        assert_false(options_check_without(&args, (enum circumstance) * other, &error));
        check_text("--%s needs %s", row->name, circumstance_name(*other));
    }
}

static void test_needs(void **state) {
    (void)state;
    for (const struct command *const *each = commands; *each; each++)
        for (const struct option_rule *rule = option_rules; rule->others; rule++)
            if (rule->is_needed) check_needed(*each, rule);
}

// The rule of what needs one of other options, whatever the circumstances; NULL: none.
static const struct option_rule *needing(int option) {
    for (const struct option_rule *rule = option_rules; rule->others; rule++) {
        const int *other = rule->others;
        while (*other < OPTION_COUNT) other++;
        if (rule->is_needed && rule->subject == option && *other == CIRCUMSTANCE_END) return rule;
    }
    return NULL;
}

// An option alone is refused by no rule but that it needs another one, and neither are two without
// a rule.
static void test_others(void **state) {
    (void)state;
    for (const struct command *const *each = commands; *each; each++)
        for (const struct option_row *row = (*each)->options; row->name; row++) {
            struct command_args args = with(*each, (int)row->id, CIRCUMSTANCE_END);
            assert_int_equal(options_check(&args, &error), !needing((int)row->id));
        }
    assert_non_null(needing(OPTION_EVENTS_WAIT));
    struct command_args args = with(command_find("report"), OPTION_AT, OPTION_FOCUS);
    assert_true(options_check(&args, &error));
    assert_true(options_check_under(&args, OF_LEAKS, &error));
    assert_true(options_check_without(&args, OF_LEAKS, &error));
}

// The parser asks, and names the command.
static void test_parser(void **state) {
    (void)state;
    char words[3][24] = {"report", "--at=1s", "--by=calls"};
    char *list[] = {words[0], words[1], words[2], NULL};
    struct command_args args;
    int status = 0;
    assert_false(command_parse(command_find("report"), 3, list, &args, &status));
    assert_int_equal(status, STATUS_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
