// SPDX-License-Identifier: Apache-2.0
// The timeline of one process, and the peak of several together.
#include "tool/model/combined.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/model/timeline.h"

enum { MIB = 1 << 20, POINT_NS = 1000 };

static struct making making;

// A process from `start_ns` for 10 intervals.
static void begin(uint64_t start_ns, uint64_t peak_bytes, uint64_t peak_ns) {
    making_start(&making);
    making_thread(&making, 4242, "sample");
    making.header.start_clock_ns = start_ns;
    making.header.end_ns = 10 * POINT_NS;
    making.header.totals.point_ns = POINT_NS;
    making.header.totals.peak_bytes = peak_bytes;
    making.header.totals.peak_ns = peak_ns;
}

static uint8_t *open_made(struct recording *recording) {
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, recording, NULL));
    return bytes;
}

static void close_made(struct recording *recording, uint8_t *bytes) {
    recording_close(recording);
    free(bytes);
}

static size_t list_spans(struct timeline_span *spans, size_t room) {
    struct recording recording;
    struct timeline timeline;
    uint8_t *bytes = open_made(&recording);
    size_t count = 0;
    timeline_start(&timeline, &recording);
    while (count < room && timeline_next(&timeline, &spans[count])) count++;
    close_made(&recording, bytes);
    return count;
}

static void check_span(const struct timeline_span *span, uint64_t start, uint64_t end, uint64_t low,
                       uint64_t high) {
    assert_int_equal(span->start_ns, start);
    assert_int_equal(span->end_ns, end);
    assert_int_equal(span->low_bytes, low);
    assert_int_equal(span->high_bytes, high);
}

static void test_timeline(void **state) {
    (void)state;
    enum { PEAK = 8 * MIB, MARGIN = PEAK / 256 };
    struct timeline_span spans[16];
    begin(0, PEAK, 2500);
    making_point(&making, 2, 1 * MIB, PEAK - 100, 4 * MIB);
    making_point(&making, 5, 2 * MIB, 3 * MIB, 2 * MIB);
    assert_int_equal(list_spans(spans, 16), 5);
    check_span(&spans[0], 0, 2000, 0, MARGIN);   // silence before the first note
    check_span(&spans[1], 2000, 3000, 0, PEAK);  // has the peak; began with nothing
    check_span(&spans[2], 3000, 5000, 4 * MIB - MARGIN, 4 * MIB + MARGIN);
    check_span(&spans[3], 5000, 6000, 2 * MIB - MARGIN, 4 * MIB + MARGIN);
    check_span(&spans[4], 6000, 10000, 2 * MIB - MARGIN, 2 * MIB + MARGIN);
}

static void test_running(void **state) {
    (void)state;
    struct timeline_span spans[4];
    begin(0, MIB, 0);
    making.header.end_ns = 0;
    making_point(&making, 0, 0, MIB, MIB);
    assert_int_equal(list_spans(spans, 4), 2);
    check_span(&spans[1], 1000, UINT64_MAX, MIB - 4096, MIB);
    making.point_count = 0;
    assert_int_equal(list_spans(spans, 4), 1);
    check_span(&spans[0], 0, UINT64_MAX, 0, MIB);
}

static void test_inherited(void **state) {
    (void)state;
    struct timeline_span spans[4];
    begin(0, 9 * MIB, 9000);
    struct cairn_thread *inherited = &making.threads[making_thread(&making, 0, "(inherited)")];
    inherited->slot = CAIRN_SLOT_SHARED;
    inherited->net_bytes = 3 * MIB;
    assert_int_equal(list_spans(spans, 4), 1);
    assert_int_equal(spans[0].low_bytes, 3 * MIB - 9 * MIB / 256);
}

// Numbers that nobody wrote end the list in bounded time, with sane values.
static void test_hostile(void **state) {
    (void)state;
    struct timeline_span spans[MAKING_POINTS * 2 + 2];
    begin(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    making.header.totals.point_ns = UINT64_MAX;
    for (uint32_t i = 0; i < MAKING_POINTS; i += 2)
        making_point(&making, i, INT64_MAX, INT64_MIN, INT64_MAX);
    size_t count = list_spans(spans, sizeof spans / sizeof *spans);
    assert_in_range(count, 1, MAKING_POINTS * 2);
    for (size_t i = 0; i < count; i++) {
        assert_true(spans[i].low_bytes <= spans[i].high_bytes);
        assert_true(spans[i].high_bytes <= (uint64_t)1 << 47);
    }
    making.header.totals.point_ns = 0;
    assert_int_equal(list_spans(spans, 4), 1);
}

static void add_made(struct combined *combined) {
    struct recording recording;
    uint8_t *bytes = open_made(&recording);
    assert_true(combined_add(combined, &recording));
    close_made(&recording, bytes);
}

// A process that holds `bytes` all the time from 1 us after its start on.
static void add_holder(struct combined *combined, uint64_t start_ns, int64_t bytes) {
    begin(start_ns, (uint64_t)bytes, 0);
    making_point(&making, 0, bytes, bytes, bytes);
    add_made(combined);
}

static void check_combined(struct combined *combined, uint64_t low, uint64_t high) {
    struct combined_peak peak = combined_find(combined);
    combined_free(combined);
    assert_int_equal(peak.low_bytes, low);
    assert_int_equal(peak.high_bytes, high);
    assert_int_equal(peak.estimate.samples, 0);
}

static void test_together(void **state) {
    (void)state;
    enum { A = 8 * MIB, B = 16 * MIB };
    struct combined combined = {0};
    add_holder(&combined, 1000000, A);
    add_holder(&combined, 1005000, B);
    check_combined(&combined, A - A / 256 + B - B / 256, A + B);
}

static void test_one_after_the_other(void **state) {
    (void)state;
    enum { A = 8 * MIB, B = 16 * MIB };
    struct combined combined = {0};
    add_holder(&combined, 1000000, A);
    add_holder(&combined, 1010001, B);
    check_combined(&combined, B, B);
}

static void add_sampled(struct combined *combined, uint64_t start_ns, uint64_t duration_ns,
                        uint64_t peak_bytes, const struct estimate *estimate) {
    struct run_row row = {.start_clock_ns = start_ns, .duration_ns = duration_ns};
    row.figures.peak_bytes = peak_bytes;
    row.figures.peak_estimate = *estimate;
    assert_true(combined_add_row(combined, &row));
}

// What lived together makes the sum unsure together; what came before or after does not.
static void test_estimates(void **state) {
    (void)state;
    const struct estimate first = {.samples = 10, .bytes_variance = 300, .blocks_variance = 3};
    const struct estimate second = {.samples = 20, .bytes_variance = 500, .blocks_variance = 5};
    const struct estimate other = {.samples = 90, .bytes_variance = 9000, .blocks_variance = 90};
    struct combined combined = {0};
    add_sampled(&combined, 1000, 100, 4000, &first);
    add_sampled(&combined, 1050, 100, 3000, &second);
    add_sampled(&combined, 2000, 100, 100, &other);
    struct combined_peak peak = combined_find(&combined);
    combined_free(&combined);
    assert_int_equal(peak.high_bytes, 7000);
    assert_int_equal(peak.estimate.samples, 30);
    assert_true(peak.estimate.bytes_variance > 799 && peak.estimate.bytes_variance < 801);
    // exec: the new image begins as the old one ends; one of them is the peak, both are counted
    add_sampled(&combined, 1000, 100, 4000, &first);
    add_sampled(&combined, 1100, 100, 4000, &second);
    peak = combined_find(&combined);
    combined_free(&combined);
    assert_int_equal(peak.high_bytes, 8000);
    assert_int_equal(peak.estimate.samples, 30);
    // a fork may have samples of its parent's blocks: deviations add up
    struct run_row fork = {.start_clock_ns = 1010, .duration_ns = 50};
    fork.figures.peak_bytes = 10;
    fork.figures.inherited_blocks = 3;
    fork.figures.peak_estimate = first;
    add_sampled(&combined, 1000, 100, 4000, &first);
    assert_true(combined_add_row(&combined, &fork));
    peak = combined_find(&combined);
    combined_free(&combined);
    assert_int_equal(peak.estimate.samples, 20);
    assert_true(peak.estimate.bytes_variance > 1199 && peak.estimate.bytes_variance < 1201);
}

static void test_alone_is_exact(void **state) {
    (void)state;
    struct combined combined = {0};
    add_holder(&combined, 0, 8 * MIB);
    check_combined(&combined, 8 * MIB, 8 * MIB);
}

// What forks inherited may be in the sum once for each of them.
static void test_copies(void **state) {
    (void)state;
    struct combined combined = {0};
    struct run_row fork = {.start_clock_ns = 1000100, .duration_ns = 500};
    fork.figures.peak_bytes = 3 * MIB;
    fork.figures.inherited_blocks = 3;
    fork.figures.inherited_bytes = 2 * MIB;
    add_holder(&combined, 1000000, 8 * MIB);
    assert_true(combined_add_row(&combined, &fork));
    assert_true(combined_add_row(&combined, &fork));
    fork.start_clock_ns = 5000000;
    assert_true(combined_add_row(&combined, &fork));
    struct combined_peak peak = combined_find(&combined);
    assert_int_equal(peak.high_bytes, 14 * MIB);
    assert_int_equal(peak.inherited_bytes, 4 * MIB);
    assert_int_equal(peak.pss_bytes, 0);
    combined_free(&combined);
}

// Adds a process that was looked at: seconds and mebibytes of each look.
static void add_looked_at(struct combined *combined, uint64_t start_ns, const uint64_t looks[][2],
                          size_t count) {
    struct cairn_resident residents[4] = {{0}};
    struct recording recording;
    begin(start_ns, MIB, 0);
    uint8_t *bytes = open_made(&recording);
    for (size_t i = 0; i < count; i++) {
        residents[i].at_ns = looks[i][0];
        residents[i].pss_bytes = looks[i][1] * MIB;
    }
    recording.sections[CAIRN_SECTION_RESIDENT] =
        (struct recording_section){.bytes = (const uint8_t *)residents,
                                   .size = sizeof *residents * count,
                                   .entry_bytes = sizeof *residents,
                                   .count = count};
    assert_true(combined_add(combined, &recording));
    close_made(&recording, bytes);
}

// Shares of memory that were looked at one after the other: no sum is told that may never have
// been there.
static void test_pss(void **state) {
    (void)state;
    static const uint64_t parent[][2] = {{100, 30}, {500, 10}, {900, 10}},
                          child[][2] = {{200, 10}, {700, 25}}, late[][2] = {{950, 7}};
    struct combined combined = {0};
    add_looked_at(&combined, 1000, parent, 3);
    struct combined_peak peak = combined_find(&combined);
    assert_int_equal(peak.pss_bytes, 30 * MIB);
    // when the child has 10, the parent has between 30 and 10; with 25 it is 10
    add_looked_at(&combined, 1000, child, 2);
    add_looked_at(&combined, 1000, late, 1);
    peak = combined_find(&combined);
    assert_int_equal(peak.pss_bytes, 35 * MIB);
    assert_int_equal(peak.pss_processes, 3);
    combined_free(&combined);
}

static void test_rows(void **state) {
    (void)state;
    struct combined combined = {0};
    struct run_row row = {.start_clock_ns = 1002000, .duration_ns = 500};
    row.figures.peak_bytes = 1000;
    add_holder(&combined, 1000000, 8 * MIB);
    assert_true(combined_add_row(&combined, &row));
    row.start_clock_ns = UINT64_MAX;
    row.duration_ns = UINT64_MAX;
    row.figures.peak_bytes = 7;
    assert_true(combined_add_row(&combined, &row));
    check_combined(&combined, 8 * MIB, 8 * MIB + 1000);
    check_combined(&combined, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeline),  cmocka_unit_test(test_running),
        cmocka_unit_test(test_inherited), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_together),  cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_estimates), cmocka_unit_test(test_alone_is_exact),
        cmocka_unit_test(test_copies),    cmocka_unit_test(test_pss),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
