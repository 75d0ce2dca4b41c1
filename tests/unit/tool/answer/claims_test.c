// SPDX-License-Identifier: Apache-2.0
// Each row of the table: its sentence is made of values that the row has, known or not.
#include "tool/answer/claims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void set_all(struct claim *claim, int64_t value) {
    const struct claim_field *field = claim_row(claim->key)->fields;
    for (; field->unit != CLAIM_UNIT_NONE; field++) {
        bool is_text = field->unit == CLAIM_UNIT_NAME || field->unit == CLAIM_UNIT_WORDS;
        bool is_real = field->unit == CLAIM_UNIT_RATE || field->unit == CLAIM_UNIT_RATIO;
        if (is_text)
            claim_set_text(claim, field->name, value ? "[name] {of} a\\thing" : "");
        else if (is_real)
            claim_set_real(claim, field->name, (double)value / 2);
        else
            claim_set(claim, field->name, value);
    }
}

static void test_rows(void **state) {
    char text[CLAIM_SENTENCE_BYTES];
    (void)state;
    for (enum claim_key key = 0; key < CLAIM_KEYS; key++) {
        const struct claim_row *row = claim_row(key);
        assert_true(row->key && row->sentence && row->sure && row->needs && row->page);
        for (enum claim_key other = 0; other < key; other++)
            assert_string_not_equal(row->key, claim_row(other)->key);
        for (int64_t value = -1; value <= 2; value++) {
            struct claim claim = {.key = key};
            if (value >= 0) set_all(&claim, value);
            claim_sentence(&claim, value == 1, text);
            assert_true(*text);
            assert_true(value > 0 || !strpbrk(text, "[]{}|"));
            claim_sure(&claim, value == 1, text);
            assert_true(*text || value <= 0);
        }
    }
}

static void test_sentence(void **state) {
    struct claim claim = {.key = CLAIM_ALIKE};
    char text[CLAIM_SENTENCE_BYTES];
    (void)state;
    claim_set_text(&claim, "where", "load {rows}");
    claim_set(&claim, "blocks", 1);
    claim_set(&claim, "block_bytes", 2048);
    claim_sentence(&claim, false, text);
    assert_string_equal(text,
                        "load {rows} allocates 1 block of 2.0 KiB one by one: an array or a pool");
    claim_set(&claim, "blocks", 20000);
    claim_sentence(&claim, true, text);
    assert_string_equal(
        text, "load {rows} allocates 20,000 blocks of 2048 one by one: an array or a pool");
}

// A share, and parts with conditions.
static void test_conditions(void **state) {
    struct claim claim = {.key = CLAIM_FREED_BY};
    char text[CLAIM_SENTENCE_BYTES];
    (void)state;
    claim_set_text(&claim, "from", "reader");
    claim_set_text(&claim, "to", "writer");
    claim_set(&claim, "bytes", 50);
    claim_set(&claim, "of_bytes", 200);
    claim_set(&claim, "late_bytes", 0);
    claim_sentence(&claim, false, text);
    assert_string_equal(text, "25 % of what reader allocates is freed by writer");
    claim_set(&claim, "late_bytes", 1);
    claim_sentence(&claim, false, text);
    assert_string_equal(text, "at least 25 % of what reader allocates is freed by writer");
}

// What does not fit is cut.
static void test_long_names(void **state) {
    struct claim claim = {.key = CLAIM_FREED_BY};
    char text[CLAIM_SENTENCE_BYTES], name[CLAIM_NAMES_BYTES + 1];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    claim_set_text(&claim, "from", name);
    claim_set_text(&claim, "to", name);
    claim_sentence(&claim, false, text);
    assert_int_equal(strlen(text), sizeof text - 1);
}

static void test_json(void **state) {
    struct claim claim = {.key = CLAIM_GROWTH};
    char *text = NULL;
    size_t size = 0;
    struct json json;
    (void)state;
    claim_set_text(&claim, "where", "open a.c:3");
    claim_set_real(&claim, "bytes_per_s", 1000.5);
    claim_set_real(&claim, "fit", 0.9876);
    claim_set(&claim, "is_freed", 1);
    FILE *out = open_memstream(&text, &size);
    json_start(&json, out);
    json_open_object(&json, NULL);
    claim_put_json(&json, &claim);
    json_close(&json);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "\"key\":\"growth\""));
    assert_non_null(strstr(text, "\"where\":\"open a.c:3\",\"bytes_per_s\":1000"));
    assert_non_null(strstr(text, "\"fit\":0.987"));
    assert_non_null(strstr(text, "\"is_freed\":true"));
    assert_non_null(strstr(text, "\"snapshots\":null"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_conditions), cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
