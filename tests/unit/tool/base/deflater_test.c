// SPDX-License-Identifier: Apache-2.0
// What is compressed by pieces is one stream: zlib reads it back whole, however it was put, and its
// bytes are the same for any number of threads.
#include "tool/base/deflater.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

enum { PIECE = 1 << 18, ANY_WINDOW_BITS = 15 + 32 };

struct bytes {
    uint8_t *items;
    size_t count;
};

static void take(void *context, const uint8_t *bytes, size_t size) {
    struct bytes *out = context;
    out->items = realloc(out->items, out->count + size + 1);
    assert_non_null(out->items);
    memcpy(out->items + out->count, bytes, size);
    out->count += size;
}

static struct bytes compress_all(const uint8_t *plain, size_t size, enum deflater_form form,
                                 unsigned threads, size_t step) {
    struct bytes out = {0};
    struct deflater *deflater = deflater_open(form, threads, take, &out);
    assert_non_null(deflater);
    for (size_t at = 0; at < size; at += step)
        deflater_put(deflater, plain + at, size - at < step ? size - at : step);
    assert_true(deflater_close(deflater));
    return out;
}

// One member, its checksum right, and nothing behind it.
static void assert_reads_back(const struct bytes *packed, const uint8_t *plain, size_t size) {
    z_stream stream = {.next_in = packed->items, .avail_in = (uInt)packed->count};
    uint8_t *out = malloc(size + 1);
    assert_non_null(out);
    assert_int_equal(inflateInit2(&stream, ANY_WINDOW_BITS), Z_OK);
    stream.next_out = out;
    stream.avail_out = (uInt)size + 1;
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    assert_int_equal(stream.total_out, size);
    assert_memory_equal(out, plain, size);
    inflateEnd(&stream);
    free(out);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

// Of all kinds in turns of 300,000 bytes: words that repeat, noise of few values and of all, zeros.
static uint8_t *make(size_t size) {
    enum { TURN = 300000, KINDS = 4, FEW = 20, SPREAD = 40 };
    uint8_t *plain = malloc(size + 1);
    uint32_t state = 1;
    assert_non_null(plain);
    for (size_t i = 0; i < size; i++) {
        uint32_t random = next_random(&state);
        bool is_word = random % SPREAD && i > FEW;
        switch (i / TURN % KINDS) {
        case 0:
            plain[i] = is_word ? plain[i - FEW] : (uint8_t)random;
            break;
        case 1:
            plain[i] = (uint8_t)(random % FEW);
            break;
        case 2:
            plain[i] = (uint8_t)random;
            break;
        default:
            plain[i] = 0;
        }
    }
    return plain;
}

static void pass(const uint8_t *plain, size_t size, enum deflater_form form) {
    struct bytes alone = compress_all(plain, size, form, 1, 1 << 16);
    assert_reads_back(&alone, plain, size);
    for (unsigned threads = 2; threads <= 4; threads += getenv("CAIRN_LONG") ? 1 : 2) {
        struct bytes packed = compress_all(plain, size, form, threads, 99991);
        assert_int_equal(packed.count, alone.count);
        assert_memory_equal(packed.items, alone.items, alone.count);
        free(packed.items);
    }
    free(alone.items);
}

static void test_lengths(void **state) {
    static const size_t sizes[] = {0,         1,          PIECE - 1,      PIECE,
                                   PIECE + 1, 3 * PIECE,  4 * PIECE + 5,  5 * PIECE,
                                   20000,     20 * PIECE, 31 * PIECE + 77};
    uint8_t *plain = make(31 * PIECE + 77);
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pass(plain, sizes[i], DEFLATER_ZLIB);
        pass(plain, sizes[i], DEFLATER_GZIP);
    }
    free(plain);
}

// What repeats is found, across the ends of pieces too; noise of few values is compressed as well
// as its frequencies allow.
static void test_ratio(void **state) {
    enum { PERIOD = 1000, BYTES = 8 * PIECE };
    uint8_t *plain = malloc(BYTES);
    uint32_t random = 7;
    (void)state;
    assert_non_null(plain);
    for (size_t i = 0; i < BYTES; i++)
        plain[i] = i < PERIOD ? (uint8_t)next_random(&random) : plain[i - PERIOD];
    struct bytes packed = compress_all(plain, BYTES, DEFLATER_ZLIB, 2, BYTES);
    assert_true(packed.count < BYTES / 50);
    free(packed.items);
    for (size_t i = 0; i < BYTES; i++) plain[i] = (uint8_t)(next_random(&random) % 16);
    packed = compress_all(plain, BYTES, DEFLATER_ZLIB, 2, BYTES);
    assert_true(packed.count < BYTES / 2 + BYTES / 100);
    free(packed.items);
    free(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_ratio)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
