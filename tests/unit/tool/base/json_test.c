// SPDX-License-Identifier: Apache-2.0
#include "tool/base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static void test_document(void **state) {
    (void)state;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "a", "x");
    json_open_array(&json, "list");
    json_put_int(&json, NULL, -5);
    json_put_uint(&json, NULL, UINT64_MAX);
    json_open_object(&json, NULL);
    json_close(&json);
    json_close(&json);
    json_put_bool(&json, "yes", true);
    json_put_null(&json, "none");
    json_close(&json);
    fclose(out);
    assert_string_equal(text, "{\"a\":\"x\",\n\"list\":[\n-5,\n18446744073709551615,\n{}],\n"
                              "\"yes\":true,\n\"none\":null}\n");
    free(text);
}

static json_t *parse_string(const char *value) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct json json;
    json_start(&json, out);
    json_open_array(&json, NULL);
    json_put_string(&json, NULL, value);
    json_close(&json);
    fclose(out);
    json_t *parsed = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(parsed);
    return parsed;
}

static void check_string(const char *value, const char *expected) {
    json_t *parsed = parse_string(value);
    assert_string_equal(json_string_value(json_array_get(parsed, 0)), expected);
    json_decref(parsed);
}

static void test_strings(void **state) {
    (void)state;
    check_string("", "");
    check_string("a\"b\\c\n\t\r\001\x7f", "a\"b\\c\n\t\r\001\x7f");
    check_string("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    check_string("\xff\xc3", "\\xff\\xc3");
    check_string("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

static void test_any_bytes_are_valid_json(void **state) {
    (void)state;
    unsigned seed = 11;
    for (int round = 0; round < 5000; round++) {
        char text[24];
        size_t size = (size_t)rand_r(&seed) % sizeof text;
        for (size_t i = 0; i < size; i++) text[i] = (char)(rand_r(&seed) % 255 + 1);
        text[size] = 0;
        json_decref(parse_string(text));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_any_bytes_are_valid_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
