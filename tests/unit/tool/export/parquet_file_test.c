// SPDX-License-Identifier: Apache-2.0
// Runs and packed groups against a plain reader of them; that whole files are right is shown by
// tests/e2e/export_parquet.py.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/export/parquet_file.h"

enum { VALUES_MAX = 400 };

static uint64_t varint(const uint8_t *bytes, size_t *at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static uint32_t bits(const uint8_t *bytes, size_t first, unsigned width) {
    uint32_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint32_t)(bytes[(first + i) / 8] >> (first + i) % 8 & 1) << i;
    return value;
}

static size_t read_back(const struct byte_buffer *in, unsigned width, uint32_t *values) {
    size_t count = 0, at = 0;
    while (at < in->size) {
        uint64_t head = varint(in->bytes, &at), length = head >> 1;
        assert_true(length > 0 && count + length <= VALUES_MAX);
        if (head & 1) {
            for (size_t i = 0; i < length * 8; i++)
                values[count++] = bits(in->bytes + at, i * width, width);
            at += length * width;
        } else {
            for (size_t i = 0; i < length; i++) values[count++] = bits(in->bytes + at, 0, width);
            at += (width + 7) / 8;
        }
    }
    assert_int_equal(at, in->size);
    return count;
}

static void check(const uint32_t *values, size_t count, unsigned width) {
    uint32_t found[VALUES_MAX + 8] = {0};
    struct byte_buffer out = {0};
    parquet_put_hybrid(&out, values, count, width);
    size_t got = read_back(&out, width, found);
    assert_true(got >= count && got < count + 8);
    for (size_t i = 0; i < count; i++) assert_int_equal(found[i], values[i]);
    for (size_t i = count; i < got; i++) assert_int_equal(found[i], 0);
    byte_buffer_free(&out);
}

// Random stretches of equal and of different values, of every length.
static void test_hybrid(void **state) {
    (void)state;
    uint32_t values[VALUES_MAX];
    uint32_t random = 1;
    for (unsigned width = 1; width <= 24; width++) {
        for (size_t count = 1; count < VALUES_MAX - 8; count += 1 + count / 8) {
            for (size_t i = 0; i < count; i++) {
                random = random * 1664525 + 1013904223;
                bool is_run = i && random >> 28 > 1;
                values[i] = is_run ? values[i - 1] : random >> 4 & ((1u << width) - 1);
            }
            check(values, count, width);
        }
    }
    check(NULL, 0, 1);
}

static void test_runs_are_short(void **state) {
    (void)state;
    uint32_t values[VALUES_MAX] = {0};
    struct byte_buffer out = {0};
    parquet_put_hybrid(&out, values, 64, 1);
    assert_int_equal(out.size, 3);  // the length takes two bytes, the value one
    byte_buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hybrid),
                                       cmocka_unit_test(test_runs_are_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
