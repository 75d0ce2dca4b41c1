// SPDX-License-Identifier: Apache-2.0
// Answers keep below 4 KiB whatever a command prints, their pages are the whole of it, and what
// they hold is UTF-8. Paths and words of questions are those that a client may name.
#include "tool/mcp/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { LINES = 400, LONG_BYTES = 20000 };

static struct roots roots;
static char place[] = "/tmp/cairn-mcp-test.XXXXXX";

static int make_place(void **state) {
    (void)state;
    char path[256];
    if (!mkdtemp(place) || !roots_add(&roots, place, NULL)) return 1;
    snprintf(path, sizeof path, "%s/one.cairn", place);
    FILE *file = fopen(path, "w");
    snprintf(path, sizeof path, "%s/-dash", place);
    bool is_ok = file && !fclose(file) && !mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/out", place);
    return !is_ok || symlink("/etc", path);
}

static int remove_place(void **state) {
    (void)state;
    char path[256];
    static const char *const names[] = {"one.cairn", "out"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", place, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/-dash", place);
    rmdir(path);
    roots_free(&roots);
    return rmdir(place);
}

static bool ask(struct question *question, const char *tool, const char *arguments, bool can_run,
                struct error *error) {
    json_t *object = json_loads(arguments, 0, NULL);
    assert_non_null(object);
    *question = (struct question){0};
    bool is_made = question_make(question, &roots, can_run, mcp_tool_find(tool), object, error);
    json_decref(object);
    return is_made;
}

static void test_pages(void **state) {
    (void)state;
    char *text = NULL, answer[ANSWER_BYTES], *whole = NULL;
    size_t size = 0, whole_size = 0, pages = 1;
    struct question question;
    struct error error;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < LINES; i++) fprintf(out, "line %d \xe2\x86\x90 of a stack\n", i);
    fclose(out);
    out = open_memstream(&whole, &whole_size);
    for (size_t page = 1; page <= pages; page++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "{\"recording\":\"one.cairn\",\"page\":%zu}", page);
        assert_true(ask(&question, "top", arguments, false, &error));
        const struct outcome outcome = {.out = text, .out_bytes = size, .errors = ""};
        assert_false(answer_write(&question, &roots, &outcome, answer));
        assert_true(strlen(answer) < ANSWER_BYTES);
        char *questions = strstr(answer, "\nask next:\n");
        assert_non_null(questions);
        const char *more = strstr(questions, " of ");
        if (page == 1) pages = strtoul(more + strlen(" of "), NULL, 10);
        assert_true(pages > 3);
        assert_int_equal(strstr(questions, "\"page\":") != NULL, page < pages);
        fwrite(answer, 1, (size_t)(questions - answer), out);
        question_free(&question);
    }
    fclose(out);
    assert_int_equal(whole_size, size);
    assert_memory_equal(whole, text, size);
    free(text);
    free(whole);
}

// One line that is too long, of bytes that are no text, to a question with long words.
static void test_hostile_output(void **state) {
    (void)state;
    char *text = malloc(LONG_BYTES), answer[ANSWER_BYTES], arguments[4096];
    struct question question;
    struct error error;
    memset(text, 0xe2, LONG_BYTES);
    text[5] = 0;
    text[6] = '\033';
    snprintf(arguments, sizeof arguments, "{\"recording\":\"%*s\",\"function\":\"%0*d\"}", 0,
             "one.cairn", 3000, 7);
    assert_true(ask(&question, "tree", arguments, false, &error));
    struct outcome outcome = {.out = text,
                              .out_bytes = LONG_BYTES,
                              .errors = text,
                              .errors_bytes = LONG_BYTES,
                              .status = 1,
                              .is_cut = true,
                              .is_late = true};
    assert_true(answer_write(&question, &roots, &outcome, answer));
    json_t *safe = json_string(answer);
    assert_non_null(safe);
    assert_null(strchr(answer, '\033'));
    assert_non_null(strstr(answer, "\\xe2\\xe2"));
    json_decref(safe);
    outcome.status = 0;
    assert_false(answer_write(&question, &roots, &outcome, answer));
    outcome = (struct outcome){.out = "", .errors = ""};
    answer_write(&question, &roots, &outcome, answer);
    assert_true(strlen(answer) > 0);
    question_free(&question);
    free(text);
}

static void test_words(void **state) {
    (void)state;
    struct question question;
    struct error error;
    assert_true(ask(&question, "diff",
                    "{\"before\":\"one.cairn\",\"before_at\":\"10s\",\"after\":\"one.cairn\"}",
                    false, &error));
    assert_int_equal(question.word_count, 5);
    assert_string_equal(question.words[2], "one.cairn@10s");
    assert_string_equal(question.words[3], "one.cairn");
    assert_string_equal(question.words[4], "--view=stacks");
    assert_null(question.words[5]);
    question_free(&question);
    assert_true(ask(&question, "summary", "{\"recording\":\"-dash\"}", false, &error));
    assert_string_equal(question.words[2], "./-dash");
    question_free(&question);
    assert_true(ask(&question, "record", "{\"command\":[\"ls\",\"--help\"],\"name\":\"one\"}", true,
                    &error));
    assert_string_equal(question.words[question.word_count - 3], "--");
    assert_string_equal(question.words[question.word_count - 1], "--help");
    assert_non_null(strstr(question.output, "/one-2.cairn"));
    question_free(&question);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *tool, *arguments, *why;
    } cases[] = {
        {"summary", "{\"recording\":\"out/passwd\"}", "no such file below"},
        {"summary", "{\"recording\":\"../\"}", "no such file below"},
        {"summary", "{\"recording\":\"/etc/passwd\"}", "no such file below"},
        {"summary", "{}", "is missing"},
        {"summary", "{\"recording\":\"one.cairn\",\"page\":-1}", "whole number"},
        {"memory", "{\"subject\":1}", "--allow-run"},
        {"explain", "{\"subject\":\"one.cairn\",\"address\":\"--recording=x\"}",
         "begin with a dash"},
        {"top", "{\"recording\":\"one.cairn\",\"limit\":1.5}", "whole number"},
        {"diff", "{\"before\":\"one.cairn\",\"before_at\":\"/../x\",\"after\":\"one.cairn\"}",
         "a slash"},
        {"top", "{\"recording\":\"one.cairn\",\"group\":\"stack\"}", "one of stacks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct question question;
        struct error error;
        assert_false(ask(&question, cases[i].tool, cases[i].arguments, false, &error));
        assert_non_null(strstr(error.text, cases[i].why));
        question_free(&question);
    }
}

// What the table promises to an agent: every question that leads on is one that there is.
static void test_table(void **state) {
    (void)state;
    for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++) {
        size_t count = 0;
        for (; !mcp_parameter_is_last(&tool->parameters[count]); count++)
            assert_true(count + 1 < MCP_PARAMETERS_MAX);
        for (const struct mcp_next *next = tool->next; next->tool; next++) {
            char inside[256];
            const struct mcp_tool *other = mcp_tool_find(next->tool);
            assert_non_null(other);
            snprintf(inside, sizeof inside, "{%s}", next->with);
            json_t *with = json_loads(inside, 0, NULL);
            const char *name;
            json_t *value;
            assert_non_null(with);
            json_object_foreach(with, name, value) {
                const struct mcp_parameter *one = other->parameters;
                while (!mcp_parameter_is_last(one) && (!one->name || strcmp(one->name, name) != 0))
                    one++;
                assert_false(mcp_parameter_is_last(one));
            }
            json_decref(with);
        }
    }
}

// The root itself with a moment behind it is not a file beside the root.
static void test_root_with_a_moment(void **state) {
    (void)state;
    struct question question;
    struct error error;
    static const char arguments[] =
        "{\"before\": \".\", \"before_at\": \"10s\", \"after\": \"one.cairn\"}";
    if (!ask(&question, "diff", arguments, false, &error)) fail_msg("%s", error.text);
    bool is_there = false;
    for (size_t i = 0; i < question.word_count; i++) {
        assert_null(strstr(question.words[i], place));
        is_there |= !strcmp(question.words[i], ".@10s");
    }
    assert_true(is_there);
    question_free(&question);
}

// An agent reads its own words: the arguments of its question, not the options behind them.
static void test_failure(void **state) {
    (void)state;
    char errors[] = "cairn: report: --focus: missing parenthesis; --top-most --at\n"
                    "cairn: needs a process: cairn report --focus X; or --depth\n";
    const struct outcome outcome = {.errors = errors, .errors_bytes = strlen(errors), .status = 2};
    char answer[ANSWER_BYTES];
    struct question question;
    struct error error;
    assert_true(
        ask(&question, "top", "{\"recording\":\"one.cairn\",\"function\":\"(\"}", false, &error));
    assert_true(answer_write(&question, &roots, &outcome, answer));
    assert_string_equal(answer,
                        "failed:\n"
                        "  cairn: report: \"function\": missing parenthesis; --top-most \"at\"\n"
                        "  cairn: needs a process: cairn report --focus X; or \"depth\"\n");
    question_free(&question);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),   cmocka_unit_test(test_hostile_output),
        cmocka_unit_test(test_words),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_table),   cmocka_unit_test(test_root_with_a_moment),
        cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
