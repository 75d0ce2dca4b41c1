// SPDX-License-Identifier: Apache-2.0
// Parsing by the table of commands.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/cmds/commands.h"
#include "tool/query/views.h"

static struct command_args args;
static int status;

// Splits `line` at blanks and parses it.
static bool parse(const char *line) {
    enum { WORDS_MAX = 16 };
    static char copy[256];
    static char *words[WORDS_MAX + 1];
    int count = 0;
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) words[count++] = word;
    words[count] = NULL;
    const struct command *command = command_find(words[0]);
    assert_non_null(command);
    status = -1;
    return command_parse(command, count, words, &args, &status);
}

static void test_options_and_words(void **state) {
    (void)state;
    assert_true(parse("report --top 7 --by=exit x.cairn --json"));
    assert_string_equal(args_text(&args, OPTION_TOP, NULL), "7");
    assert_string_equal(args_text(&args, OPTION_BY, NULL), "exit");
    assert_true(args_has(&args, OPTION_JSON));
    assert_false(args_has(&args, OPTION_INVERTED));
    assert_int_equal(args.word_count, 1);
    assert_string_equal(args.words[0], "x.cairn");
    assert_true(parse("report -n3"));
    assert_string_equal(args_text(&args, OPTION_TOP, NULL), "3");
    assert_int_equal(args.word_count, 0);
    assert_null(args.words[0]);
}

static void test_program_keeps_its_options(void **state) {
    (void)state;
    assert_true(parse("run -q ls -l --top 3"));
    assert_true(args_has(&args, OPTION_QUIET));
    assert_false(args_has(&args, OPTION_TOP));
    assert_int_equal(args.word_count, 4);
    assert_string_equal(args.words[1], "-l");
    assert_true(parse("run -o out -- -strange -q"));
    assert_string_equal(args_text(&args, OPTION_OUTPUT, NULL), "out");
    assert_int_equal(args.word_count, 2);
    assert_string_equal(args.words[0], "-strange");
    assert_false(args_has(&args, OPTION_QUIET));
}

static void check_size(const char *line, bool is_right, uint64_t expected) {
    struct error error = {""};
    uint64_t bytes;
    assert_true(parse(line));
    assert_int_equal(args_size(&args, OPTION_MAX_OVERHEAD, &bytes, &error), is_right);
    if (is_right) assert_int_equal(bytes, expected);
    if (!is_right) assert_non_null(strstr(error.text, "run: --max-overhead needs a size"));
}

static void test_sizes(void **state) {
    (void)state;
    check_size("run true", true, 0);
    check_size("run --max-overhead 64M true", true, 64u << 20);
    check_size("run --max-overhead=1.5GiB true", true, (uint64_t)3 << 29);
    check_size("run --max-overhead 4096 true", true, 4096);
    check_size("run --max-overhead 0 true", false, 0);
    check_size("run --max-overhead much true", false, 0);
    check_size("run --max-overhead -5 true", false, 0);
}

static void test_wrong_use(void **state) {
    (void)state;
    const char *lines[] = {"run",        "run -q",  "report --foo", "report -Z", "report --top",
                           "report a b", "info -o", "env x",        "run -o",    "report --json=1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_false(parse(lines[i]));
        assert_int_equal(status, STATUS_USAGE);
    }
}

// What usage errors say.
static void test_messages(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"run --sample=1 x", "run: --sample takes no value: --sample=1"},
        {"run --foo x", "run: unknown option --foo"},
        {"run --view x", "run: unknown option --view (cairn report has it)"},
        {"diff --format json x", "diff: unknown option --format (did you mean --json?)"},
        {"attach --for 5s 1", "attach: unknown option --for (did you mean --record-for?)"},
        {"attach --for=5s 1", "attach: unknown option --for=5s (did you mean --record-for?)"},
        {"attach --duration 5s 1", "unknown option --duration (did you mean --record-for?)"},
        {"report --vew tree", "report: unknown option --vew (did you mean --view?)"},
        {"run --ouput=x y", "run: unknown option --ouput=x (did you mean --output?)"},
        {"report --help=some", "report: --help takes nothing or =all, not \"some\""},
        {"attach -p 1 2", "attach: unexpected argument \"2\""},
        {"report --top", "report: option --top needs an argument"},
        {"history --markdown --series x", "history: option --markdown needs an argument"},
        {"run -o -- true", "run: option -o needs an argument"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512] = "";
        FILE *saved = stderr;
        stderr = fmemopen(text, sizeof text, "w");
        bool is_right = parse(cases[i].line);
        fclose(stderr);
        stderr = saved;
        assert_false(is_right);
        if (!strstr(text, cases[i].said))
            fail_msg("\"%s\" does not say \"%s\"", text, cases[i].said);
    }
}

static void test_help_ends_well(void **state) {
    (void)state;
    assert_false(parse("run --help"));
    assert_int_equal(status, STATUS_OK);
    assert_false(parse("report x -h"));
    assert_int_equal(status, STATUS_OK);
}

// -p PID stands for the word PID where a process is meant, and keeps its meaning elsewhere.
static void test_pid(void **state) {
    (void)state;
    assert_true(parse("attach --exact -p 12 -q"));
    assert_int_equal(args.word_count, 1);
    assert_string_equal(args.words[0], "12");
    assert_true(parse("ctl -p 12 mark warm"));
    assert_int_equal(args.word_count, 3);
    assert_string_equal(args.words[0], "12");
    assert_string_equal(args.words[1], "mark");
    assert_string_equal(args.words[2], "warm");
    assert_true(parse("report -p 12 run"));
    assert_int_equal(args.word_count, 1);
    assert_string_equal(args_text(&args, OPTION_PROCESS, ""), "12");
}

// Each view stands below one question, and each name there is a view's.
static void test_view_groups(void **state) {
    (void)state;
    size_t named = 0, count = 0;
    for (const struct view *view = views; view->name; view++) count++;
    for (const struct view_group *group = view_groups; group->title; group++) {
        char names[256];
        assert_true(strlen(group->names) < sizeof names);
        strcpy(names, group->names);
        for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
            assert_non_null(view_find(name));
            for (const struct view_group *other = view_groups; other < group; other++)
                assert_null(strstr(other->names, name));
            named++;
        }
    }
    assert_int_equal(named, count);
}

// Options that a command names first are its own.
static void test_first_options(void **state) {
    (void)state;
    for (const struct command *const *each = commands; *each; each++) {
        char names[256];
        snprintf(names, sizeof names, "%s", (*each)->first ? (*each)->first : "");
        for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
            const struct option_row *row = (*each)->options;
            while (row->name && strcmp(row->name, name) != 0) row++;
            if (!row->name) fail_msg("cairn %s has no --%s", (*each)->name, name);
        }
    }
}

static void test_numbers(void **state) {
    (void)state;
    struct error error;
    uint64_t number;
    assert_true(parse("report"));
    assert_true(args_number(&args, OPTION_TOP, 10, 100, &number, &error));
    assert_int_equal(number, 10);
    const char *wrong[] = {"report --top x", "report --top -1", "report --top 101",
                           "report --top 1x", "report --top 99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(parse(wrong[i]));
        assert_false(args_number(&args, OPTION_TOP, 10, 100, &number, &error));
        assert_non_null(strstr(error.text, "report: --top needs a number, not \""));
    }
    assert_true(parse("report --top 100"));
    assert_true(args_number(&args, OPTION_TOP, 10, 100, &number, NULL));
    assert_int_equal(number, 100);
}

// What the table must keep for parsing, help and completion to work.
static void test_table(void **state) {
    (void)state;
    for (const struct command *const *each = commands; *each; each++) {
        const struct command *command = *each;
        assert_non_null(command->name);
        assert_non_null(command->run);
        assert_non_null(command->help);
        bool has[256] = {['h'] = true};
        size_t count = 0;
        for (const struct option_row *row = command->options; row->name; row++, count++) {
            assert_non_null(row->help);
            assert_true(strlen(row->help) <= 56);  // a line of help stays within 80 columns
            if (!row->letter) continue;
            assert_false(has[(unsigned char)row->letter]);
            has[(unsigned char)row->letter] = true;
        }
        assert_true(count < COMMAND_OPTIONS_MAX);
        assert_ptr_equal(command_find(command->name), command);
    }
    assert_null(command_find("nothing"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_and_words),
        cmocka_unit_test(test_program_keeps_its_options),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_help_ends_well),
        cmocka_unit_test(test_pid),
        cmocka_unit_test(test_view_groups),
        cmocka_unit_test(test_first_options),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
