// SPDX-License-Identifier: Apache-2.0
// A memory profile and spans of Go made by hand, in both of their forms; then lists that turn in a
// circle or lead nowhere, counts that cannot be, spans that contradict themselves, random bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/go/buckets.h"
#include "tool/go/spans.h"

enum { WORDS = 1 << 14, VARIABLES = 16, FIRST = 64, SECOND = 128 };
enum { NEXT, NEXT_OF_ALL, KIND, SUM, SIZE, DEPTH, STACK };  // words of a bucket
#define BASE UINT64_C(0xc000000000)

static uint64_t made[WORDS];

static uint64_t at(size_t word) {
    return BASE + word * sizeof *made;
}

static bool read_made(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    if (address < BASE || address - BASE > sizeof made || size > sizeof made - (address - BASE))
        return false;
    memcpy(bytes, (const uint8_t *)made + (address - BASE), size);
    return true;
}

static const struct memory_reader memory = {.read = read_made};

// ---- the profile --------------------------------------------------------------------------------

static uint64_t sum_of(const uint64_t *bucket) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= bucket[DEPTH]; i++) {
        sum += i < bucket[DEPTH] ? bucket[STACK + i] : bucket[SIZE];
        sum += sum << 10;
        sum ^= sum >> 6;
    }
    sum += sum << 3;
    return sum ^ sum >> 11;
}

// A bucket with a stack of two; its counts begin at the word that is returned.
static uint64_t *make_bucket(size_t word, size_t next, uint64_t size) {
    uint64_t *bucket = &made[word];
    bucket[NEXT_OF_ALL] = next ? at(next) : 0;
    bucket[KIND] = 1;
    bucket[SIZE] = size;
    bucket[DEPTH] = 2;
    bucket[STACK] = 0x401000 + word;
    bucket[STACK + 1] = 0x402000;
    bucket[SUM] = sum_of(bucket);
    return &bucket[STACK + 2];
}

// Cycle 4 of a program whose samples stand for 1 byte; two buckets.
static struct go_profile_place make_profile(bool has_bytes) {
    memset(made, 0, sizeof made);
    made[0] = at(FIRST);
    made[1] = 4 << 1 | 1;
    made[2] = 1;
    uint64_t *counts = make_bucket(FIRST, SECOND, 100);
    const uint64_t published[] = {5, 2, 500, 200};
    const uint64_t now[] = {1, 0, 100, 0}, later[] = {9, 0, 900, 0};
    const size_t step = has_bytes ? 4 : 2;
    memcpy(counts, published, step * sizeof *counts);
    memcpy(counts + (1 + 4 % 3) * step, now, step * sizeof *counts);
    memcpy(counts + (1 + 5 % 3) * step, later, step * sizeof *counts);
    make_bucket(SECOND, 0, 30);
    return (struct go_profile_place){.buckets = at(0),
                                     .cycle = at(1),
                                     .is_shifted = true,
                                     .rate = at(2),
                                     .has_bytes = has_bytes};
}

static void check_refused(const struct go_profile_place *place, const char *part) {
    struct go_profile profile;
    struct error error;
    assert_false(go_profile_read(&memory, place, &profile, &error));
    assert_non_null(strstr(error.text, part));
    assert_null(profile.buckets.items);
}

static void test_profile(void **state) {
    (void)state;
    for (int has_bytes = 0; has_bytes < 2; has_bytes++) {
        const struct go_profile_place place = make_profile(has_bytes);
        struct go_profile profile;
        struct error error;
        assert_true(go_profile_read(&memory, &place, &profile, &error));
        assert_int_equal(profile.rate, 1);
        assert_int_equal(profile.buckets.count, 2);
        const struct go_bucket *bucket = &profile.buckets.items[0];
        assert_int_equal(bucket->depth, 2);
        assert_int_equal(profile.addresses.items[bucket->first + 1], 0x402000);
        // the present cycle counts, the next one does not
        assert_int_equal(bucket->allocs, 6);
        assert_int_equal(bucket->frees, 2);
        assert_int_equal(bucket->allocated_bytes, 600);
        assert_int_equal(bucket->freed_bytes, 200);
        go_profile_free(&profile);
    }
}

static void test_before_the_first_collection(void **state) {
    (void)state;
    const struct go_profile_place place = make_profile(true);
    struct go_profile profile;
    struct error error;
    memset(&made[FIRST + STACK + 2], 0, 4 * sizeof *made);      // published
    memset(&made[FIRST + STACK + 2 + 8], 0, 4 * sizeof *made);  // of the present cycle
    assert_true(go_profile_read(&memory, &place, &profile, &error));
    assert_int_equal(profile.buckets.items[0].allocs, 9);
    go_profile_free(&profile);
}

static void test_scaling(void **state) {
    (void)state;
    uint64_t count = 3, bytes = 300;
    go_profile_scale(1, &count, &bytes);
    assert_int_equal(count, 3);
    go_profile_scale(524288, &count, &bytes);  // 1 / (1 - exp(-100 / 524288)) = 5243.38
    assert_int_equal(count, 15730);
    assert_int_equal(bytes, 1573014);
    count = UINT64_C(1) << 50;  // blocks of less than a byte: no memory has them
    bytes = 1;
    go_profile_scale(524288, &count, &bytes);
    assert_true(count == UINT64_C(1) << 62 && bytes == UINT64_C(1) << 62);
    count = 0;
    go_profile_scale(1, &count, &bytes);
    assert_int_equal(bytes, 0);
}

static void test_bad_lists(void **state) {
    (void)state;
    struct go_profile_place place = make_profile(true);
    made[SECOND + NEXT_OF_ALL] = at(FIRST);
    check_refused(&place, "turns in a circle");
    made[SECOND + NEXT_OF_ALL] = at(SECOND);
    check_refused(&place, "turns in a circle");
    made[SECOND + NEXT_OF_ALL] = 8;
    check_refused(&place, "at 0x8 is no memory");
    made[SECOND + NEXT_OF_ALL] = at(WORDS - 4);
    check_refused(&place, "is no memory");
    place = make_profile(true);
    made[SECOND + KIND] = 2;
    check_refused(&place, "is no bucket");
    place = make_profile(true);
    made[SECOND + DEPTH] = 1 << 20;
    check_refused(&place, "is no bucket");
    place = make_profile(true);
    made[SECOND + STACK] ^= 1;
    check_refused(&place, "unknown form");
    place = make_profile(true);
    made[FIRST + STACK + 2] = UINT64_C(1) << 60;
    check_refused(&place, "more than there can be");
    place = make_profile(false);
    made[FIRST + STACK + 2] = UINT64_C(1) << 60;
    check_refused(&place, "more than there can be");
    place.buckets = 1;
    check_refused(&place, "variables are not there");
}

// ---- spans --------------------------------------------------------------------------------------

enum { LIST = 8300, SPANS = 9000, SPAN_WORDS = 16, HEAP_MINOR = 24, ALL_SPANS = 65864 / 8 };

static void make_span(size_t number, uint64_t pages, uint64_t object_bytes, unsigned objects,
                      unsigned class, unsigned state) {
    uint64_t *span = &made[SPANS + number * SPAN_WORDS];
    made[LIST + number] = at(SPANS + number * SPAN_WORDS);
    span[3] = UINT64_C(0xc100000000) + number * (UINT64_C(1) << 20);
    span[4] = pages;
    span[12] = objects | (uint64_t)(class << 1) << 16 | (uint64_t)state << 24;
    span[13] = object_bytes;
}

static void make_spans(void) {
    memset(made, 0, sizeof made);
    made[ALL_SPANS] = at(LIST);
    made[ALL_SPANS + 1] = 20;
    for (size_t i = 0; i < 16; i++) make_span(i, 1, 112, 70, 9, 1);
    make_span(16, 5, 40960, 1, 0, 1);
    make_span(17, 4, 0, 0, 0, 2);  // a stack
    make_span(18, 4, 0, 0, 0, 0);  // not in use
    make_span(19, 1, 16, 512, 2, 1);
}

static void test_spans(void **state) {
    (void)state;
    struct go_spans spans;
    struct error error;
    make_spans();
    assert_true(go_spans_read(&memory, BASE, HEAP_MINOR, &spans, &error));
    assert_int_equal(spans.classes.count, 3);
    assert_int_equal(spans.classes.items[0].object_bytes, 16);
    assert_int_equal(spans.classes.items[1].objects, 16 * 70);
    assert_int_equal(spans.classes.items[1].object_sum, 16 * 70 * 112);
    assert_int_equal(spans.classes.items[2].object_bytes, 0);  // large ones come last
    assert_int_equal(spans.classes.items[2].bytes, 40960);
    assert_int_equal(spans.bytes, (16 + 5 + 1) * 8192);
    assert_int_equal(spans.stack_bytes, 4 * 8192);
    go_spans_free(&spans);
    assert_false(go_spans_read(&memory, BASE, 18, &spans, &error));
    assert_non_null(strstr(error.text, "Go 1.18"));
}

static void test_odd_spans(void **state) {
    (void)state;
    struct go_spans spans;
    struct error error;
    make_spans();
    made[SPANS + 12] = 74 | 18 << 16 | 1 << 24;  // more objects than have room: it is changing
    assert_true(go_spans_read(&memory, BASE, HEAP_MINOR, &spans, &error));
    assert_int_equal(spans.odd_count, 1);
    go_spans_free(&spans);
    made[SPANS + SPAN_WORDS + 13] = 0;
    made[SPANS + 2 * SPAN_WORDS + 4] = UINT64_MAX;
    assert_false(go_spans_read(&memory, BASE, HEAP_MINOR, &spans, &error));
    assert_non_null(strstr(error.text, "contradict themselves"));
    made[ALL_SPANS + 1] = UINT64_MAX;
    assert_false(go_spans_read(&memory, BASE, HEAP_MINOR, &spans, &error));
    made[ALL_SPANS + 1] = 1 << 20;
    assert_false(go_spans_read(&memory, BASE, HEAP_MINOR, &spans, &error));
    assert_non_null(strstr(error.text, "no memory"));
}

static void test_random(void **state) {
    (void)state;
    uint64_t random = 1;
    for (int turn = 0; turn < 300; turn++) {
        struct go_profile profile;
        struct go_spans spans;
        struct error error;
        struct go_profile_place place = make_profile(turn % 2);
        if (turn % 3 == 0) make_spans();
        for (int i = 0; i < 20; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            made[(random >> 33) % (turn % 3 ? 160 : WORDS)] = random >> random % 64;
        }
        if (go_profile_read(&memory, &place, &profile, &error)) go_profile_free(&profile);
        if (go_spans_read(&memory, BASE, HEAP_MINOR, &spans, &error)) go_spans_free(&spans);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile), cmocka_unit_test(test_before_the_first_collection),
        cmocka_unit_test(test_scaling), cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_spans),   cmocka_unit_test(test_odd_spans),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
