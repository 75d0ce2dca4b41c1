// SPDX-License-Identifier: Apache-2.0
// A heap over time against all of its values.
#include "runtime/api/heap_points.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "runtime/record/timeline.h"
#include "runtime/sink/sink.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { NOTES = 20000, MOST_BYTES = 100000, SCOPE = 7 };

static int64_t noted[NOTES];
static uint64_t times[NOTES];

static void start(void) {
    const uint64_t bytes = CAIRN_HEAP_POINTS_LIMIT * sizeof(struct cairn_heap_points);
    struct region region = recording_region(13, bytes);
    sink.header = &recording_header;
    recording_header.section_count = 1;
    recording_header.sections[0] =
        (struct cairn_section){.kind = CAIRN_SECTION_HEAP_POINTS,
                               .offset = (uint64_t)(region.base - (uint8_t *)&recording_header),
                               .capacity_bytes = bytes};
    assert_non_null(heap_points_region()->base);
}

static const struct cairn_heap_points *points_of(uint32_t number) {
    return (struct cairn_heap_points *)heap_points_region()->base + (number - 1);
}

// What was noted in an interval; false: nothing.
static bool expected(uint32_t count, uint64_t from_ns, uint64_t to_ns, struct cairn_point *point) {
    *point = (struct cairn_point){.is_used = 0};
    for (uint32_t i = 0; i < count; i++) {
        if (times[i] < from_ns || times[i] >= to_ns) continue;
        if (!point->is_used || noted[i] < point->min_bytes) point->min_bytes = noted[i];
        if (!point->is_used || noted[i] > point->max_bytes) point->max_bytes = noted[i];
        point->last_bytes = noted[i];
        point->allocations = i;
        point->is_used = 1;
    }
    return point->is_used;
}

static void check(const struct cairn_heap_points *points, uint32_t count) {
    for (uint64_t i = 0; i < CAIRN_HEAP_POINT_COUNT; i++) {
        const struct cairn_point *point = &points->points[i];
        struct cairn_point wanted;
        bool is_used = expected(count, i * points->point_ns, (i + 1) * points->point_ns, &wanted);
        assert_int_equal(point->is_used, is_used);
        if (!is_used) continue;
        assert_int_equal(point->min_bytes, wanted.min_bytes);
        assert_int_equal(point->max_bytes, wanted.max_bytes);
        assert_int_equal(point->last_bytes, wanted.last_bytes);
        assert_int_equal(point->allocations, wanted.allocations);
    }
}

// Pauses between notes from far below an interval to some of them.
static void test_each_interval_has_what_was_noted_in_it(void **state) {
    (void)state;
    uint64_t seed = 5, now_ns = 0;
    start();
    uint32_t number = heap_points_make(SCOPE);
    assert_int_not_equal(number, 0);
    for (uint32_t i = 0; i < NOTES; i++) {
        now_ns += random_below(&seed, i % 50 ? POINT_FIRST_NS / 4 : 3 * POINT_FIRST_NS);
        times[i] = now_ns;
        noted[i] = (int64_t)random_below(&seed, MOST_BYTES);
        const struct cairn_point now = {.last_bytes = noted[i], .allocations = i};
        heap_points_note(number, &now, now_ns);
        if (i % (NOTES / 8) == 0) check(points_of(number), i + 1);
    }
    check(points_of(number), NOTES);
    assert_int_equal(points_of(number)->scope, SCOPE);
    assert_true(points_of(number)->point_ns > POINT_FIRST_NS);
}

// One heap's notes are no other's; a child begins anew, where its parent's lie.
static void test_heaps_and_children_are_apart(void **state) {
    (void)state;
    const struct cairn_point now = {.last_bytes = 5};
    start();
    uint32_t first = heap_points_make(SCOPE), second = heap_points_make(SCOPE + 1);
    heap_points_note(first, &now, (uint64_t)POINT_FIRST_NS * CAIRN_HEAP_POINT_COUNT);
    assert_int_equal(points_of(second)->points[0].is_used, 0);
    assert_int_equal(points_of(second)->point_ns, POINT_FIRST_NS);
    heap_points_inherit();
    assert_int_equal(points_of(first)->scope, SCOPE);
    assert_int_equal(points_of(first)->point_ns, POINT_FIRST_NS);
    for (uint32_t i = 0; i < CAIRN_HEAP_POINT_COUNT; i++)
        assert_int_equal(points_of(first)->points[i].is_used, 0);
}

static void test_more_heaps_than_there_is_room_for(void **state) {
    (void)state;
    const struct cairn_point now = {.last_bytes = 5};
    start();
    for (uint32_t i = 0; i < CAIRN_HEAP_POINTS_LIMIT; i++)
        assert_int_not_equal(heap_points_make(i + 1), 0);
    assert_int_equal(heap_points_make(1), 0);
    heap_points_note(0, &now, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_interval_has_what_was_noted_in_it),
        cmocka_unit_test(test_heaps_and_children_are_apart),
        cmocka_unit_test(test_more_heaps_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
