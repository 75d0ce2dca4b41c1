// SPDX-License-Identifier: Apache-2.0
// Forms of an answer, letter by letter, from rows that are made up: units, values that are not
// known, parts of rows, rows for people or programs alone, hostile names, narrow screens.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/answer/forms.h"

enum { SHARE, VALUE, AT, RATE, FIT, IS_OLD, NAME, PLACE, ID, COLUMNS };
enum { NARROW = 40, WIDE = 120, WHOLE = 4096, ROWS = 4 };

static const struct answer_column columns[COLUMNS] = {
    [SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE, .width = 6},
    [VALUE] = ANSWER_FIGURES("value", "held", ANSWER_BYTES, 9, .has_dash = true),
    [AT] = ANSWER_FIGURES("at_ns", "at", ANSWER_TIME, 8, .shown_from = WIDE),
    [RATE] = ANSWER_DATA("bytes_per_s", ANSWER_RATE),
    [FIT] = ANSWER_DATA("fit", ANSWER_REAL),
    [IS_OLD] = ANSWER_DATA("is_old", ANSWER_BOOL),
    [NAME] = ANSWER_NAMES("name", ANSWER_TAIL_NAME, .head = "name"),
    [PLACE] = ANSWER_TAILS("place", " ", NULL),
    [ID] = ANSWER_DATA("id", ANSWER_NUMBER)};

static const struct view_options options = {.top = 2};
static const char hostile[] = "=a\"b|<i>\x1b[31m\xff";

static void tell_first(struct answer_row *row) {
    answer_set(row, SHARE, 1024);
    answer_set(row, VALUE, 1024);
    answer_set(row, AT, 1500000000);
    answer_set_real(row, RATE, 2048);
    answer_set_real(row, FIT, 0.987);
    answer_set(row, IS_OLD, true);
    answer_set_text(row, NAME, hostile);
    answer_set_text(row, PLACE, "a.c:1");
    answer_set(row, ID, 12345);
}

static bool next_row(struct answer *answer, struct answer_row *row) {
    size_t *at = answer->state;
    switch ((*at)++) {
    case 0:
        tell_first(row);
        return true;
    case 1:  // a part of it
        row->level = 1;
        row->use = ANSWER_FOR_PROGRAMS;
        answer_set(row, VALUE, 7);
        return true;
    case 2:
        answer_set(row, VALUE, 0);
        answer_set_unknown(row, AT);
        answer_set_text(row, NAME, NULL);
        return true;
    case ROWS - 1:
        row->use = ANSWER_FOR_PEOPLE;
        row->instead = "...";
        answer_set_text(row, NAME, "3 others");
        return true;
    default:
        return false;
    }
}

static struct answer make(size_t *at) {
    *at = 0;
    struct answer answer = {.view = "made",
                            .title = "5 things",
                            .options = &options,
                            .columns = columns,
                            .column_count = COLUMNS,
                            .gap = 1,
                            .has_levels = true,
                            .whole = WHOLE,
                            .shown = 2,
                            .count = 5,
                            .next_row = next_row,
                            .state = at};
    answer_note(&answer, "a note of %d", 1);
    return answer;
}

static void check(const char *form, size_t width, const char *wanted) {
    char *text = NULL;
    size_t size, at;
    FILE *out = open_memstream(&text, &size);
    struct terminal terminal = {.out = out, .columns = width};
    struct answer answer = make(&at);
    struct error error = {""};
    const struct answer_form *found = answer_form_find(form);
    assert_true(found ? found->print(out, &answer, &error)
                      : answer_print_text(&terminal, &answer, &error));
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
    answer_close(&answer);
}

static void test_screen(void **state) {
    (void)state;
    check("", WIDE,
          "5 things, the first 2 (--top 0: all)\n"
          "            held       at\n"
          "  25 %   1.0 KiB   1.50 s  =a\"b|<i>\\x1b[31m\\xff a.c:1\n"
          "               -        -\n"
          "                      ...  3 others\n"
          "a note of 1\n");
    check("", NARROW,
          "5 things, the first 2 (--top 0: all)\n"
          "            held\n"
          "  25 %   1.0 KiB  =a\"b|\xe2\x80\xa6"
          "1b[31m\\xff a.c:1\n"
          "               -\n"
          "             ...  3 others\n"
          "a note of 1\n");
}

static void test_data(void **state) {
    (void)state;
    check("csv", 0,
          "level,share,value,at_ns,bytes_per_s,fit,is_old,name,place,id\n"
          "0,0.250,1024,1500000000,2048,0.987,1,\"'=a\"\"b|<i>\\x1b[31m\\xff\",\"a.c:1\",12345\n"
          "1,,7,,,,,,,\n"
          "0,,0,,,,,,,\n");
    check("ndjson", 0,
          "{\"level\":0,\"share\":0.250,\"value\":1024,\"at_ns\":1500000000,\"bytes_per_s\":2048,"
          "\"fit\":0.987,\"is_old\":true,\"name\":\"=a\\\"b|<i>\\u001b[31m\\\\xff\",\"place\":"
          "\"a.c:1\",\"id\":12345}\n"
          "{\"level\":1,\"value\":7}\n"
          "{\"level\":0,\"value\":0,\"at_ns\":null,\"name\":null}\n");
}

static void test_markdown(void **state) {
    (void)state;
    check("md", 0,
          "**5 things**, the first 2\n\n"
          "| share | held | at | name | place |\n"
          "|---:|---:|---:|---|---|\n"
          "| 25 % | 1.0 KiB | 1.50 s | =a\"b\\|\\<i\\>\\x1b\\[31m\\xff | a.c:1 |\n"
          "|  | 0 B | not known | not known |  |\n"
          "|  |  |  | 3 others |  |\n"
          "\na note of 1\n");
}

static void test_lines_of_places(void **state) {
    (void)state;
    check("unix", 0,
          "a.c:1: 25 %, 1.0 KiB held, 1.50 s at, =a\"b|<i>\\x1b[31m\\xff\n"
          "7 B held\n"
          "0 B held\n");
}

static void test_calls(void **state) {
    (void)state;
    size_t at;
    struct answer answer = make(&at);
    struct error error = {""};
    assert_false(answer_print_calls(stdout, &answer, &error));
    assert_string_equal(error.text, "view made has no calls in calls");
    assert_null(answer_form_find("xml"));
}

static bool fail_row(struct answer *answer, struct answer_row *row) {
    (void)row;
    answer->is_failed = true;
    return false;
}

// Rows that are missing are no end of the list.
static void test_failure(void **state) {
    (void)state;
    size_t at;
    for (const struct answer_form *form = answer_forms; form->name; form++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        struct answer answer = make(&at);
        struct error error = {""};
        answer.next_row = fail_row;
        assert_false(form->print(out, &answer, &error));
        assert_true(*error.text);
        fclose(out);
        free(text);
    }
}

// An answer about a process: what is said of all of it, lines above the rows, a share of a row's
// own whole, zeros that are not printed, and a line of a source that is empty.
static bool next_part(struct answer *answer, struct answer_row *row) {
    size_t *at = answer->state;
    if (*at == 2) return false;
    answer_set(row, 0, *at ? 0 : 3);
    answer_set_ratio(row, 1, 1, *at ? 0 : 4);
    answer_set_text(row, 2, *at ? "" : "int x;");
    ++*at;
    return true;
}

static void check_beside(const char *form, const char *wanted) {
    static const struct answer_column parts[] = {
        ANSWER_FIGURES("blocks", "BLOCKS", ANSWER_COUNT, 8, .is_blank = true),
        ANSWER_FIGURES("used", "USED", ANSWER_RATIO, 6),
        {.key = "text", .place = ANSWER_TAIL_LINE, .before = "  "}};
    char *text = NULL;
    size_t size, at = 0;
    FILE *out = open_memstream(&text, &size);
    const struct terminal terminal = {.out = out, .columns = WIDE};
    struct claim claim = {.key = CLAIM_REMEDY_UNKNOWN};
    struct error error = {""};
    struct answer answer = {.view = "parts",
                            .options = &options,
                            .subject = "42",
                            .pid = 42,
                            .columns = parts,
                            .column_count = 3,
                            .tail_head = "LINE",
                            .shown = 2,
                            .count = 2,
                            .claims = &claim,
                            .claim_count = 1,
                            .next_row = next_part,
                            .state = &at};
    claim_set_text(&claim, "why", "it is gone");
    snprintf(answer.title, sizeof answer.title, "2 lines");
    answer_show_above(&answer, STYLE_DIM, "for people");
    answer_note_above(&answer, STYLE_DIM, "for all");
    answer_fact(&answer, "bytes", ANSWER_BYTES, 7);
    answer_fact_known(&answer, "pause_ns", ANSWER_TIME, 0, false);
    answer_fact_text(&answer, "core", NULL);
    const struct answer_form *found = answer_form_find(form);
    assert_true(found ? found->print(out, &answer, &error)
                      : answer_print_text(&terminal, &answer, &error));
    fclose(out);
    if (found)
        assert_non_null(strstr(text, wanted));
    else
        assert_string_equal(text, wanted);
    free(text);
}

static void test_beside(void **state) {
    (void)state;
    check_beside("", "42 \xc2\xb7 2 lines\nfor people\nfor all\n  BLOCKS  USED  LINE\n"
                     "       3  25 %  int x;\n             -  \n");
    check_beside("json", "\"process\":{\"pid\":42,\"program\":null}");
    check_beside("json", "{\"blocks\":3,\"used\":0.250,\"text\":\"int x;\"},\n"
                         "{\"blocks\":0,\"used\":null,\"text\":\"\"}");
    check_beside("json", "\"facts\":{\"bytes\":7,\"pause_ns\":null,\"core\":null}");
    check_beside("json", "\"evidence\":{\"why\":\"it is gone\"},"
                         "\"sentence\":\"not known: it is gone\"");
    check_beside("json", "\"notes\":[\n\"for all\"]");
    check_beside("md", "for people\n\nfor all\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_screen),   cmocka_unit_test(test_data),
        cmocka_unit_test(test_markdown), cmocka_unit_test(test_lines_of_places),
        cmocka_unit_test(test_calls),    cmocka_unit_test(test_failure),
        cmocka_unit_test(test_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
