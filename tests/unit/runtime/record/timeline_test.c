// SPDX-License-Identifier: Apache-2.0
// The timeline of two threads against all totals that they published: what a point was not told
// changes neither its lowest nor its highest value.
#include "runtime/record/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { THREADS = 2, NOTES = 300000, STEP_BYTES = 1000, LAST_NOTES = 8 };

struct note {
    uint64_t at_ns;
    int64_t bytes;
};

static struct note notes[NOTES];
static struct cairn_totals totals;
static uint64_t used_bytes;

static const struct cairn_point *timeline_start(void) {
    const size_t bytes = CAIRN_POINT_LIMIT * sizeof(struct cairn_point);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    used_bytes = 0;
    memset(&totals, 0, sizeof totals);
    struct region region = {
        .base = memory, .capacity_bytes = bytes, .chunk_bytes = bytes, .used_bytes = &used_bytes};
    timeline_open(region, &totals);
    return memory;
}

// Publishes totals that go up and down, up to `step_ns` apart. How many points took no note of.
static unsigned publish(uint64_t seed, uint64_t step_ns) {
    struct point_seen seen[THREADS] = {0};
    int64_t bytes = 0;
    uint64_t now_ns = 0;
    unsigned left_out = 0;
    for (int i = 0; i < NOTES; i++) {
        struct point_seen *own = &seen[random_below(&seed, THREADS)];
        bytes += (int64_t)random_below(&seed, 2 * STEP_BYTES) - STEP_BYTES;
        now_ns += random_below(&seed, step_ns);
        notes[i] = (struct note){now_ns, bytes};
        if (timeline_has(own, bytes, now_ns))
            left_out++;
        else
            timeline_note(own, bytes, i, now_ns);
    }
    return left_out;
}

// last_blocks of a point is the number of the note that it was told last.
static void check_point(const struct cairn_point *point, int first, int end) {
    int64_t min = notes[first].bytes, max = min;
    for (int i = first; i < end; i++) {
        if (notes[i].bytes < min) min = notes[i].bytes;
        if (notes[i].bytes > max) max = notes[i].bytes;
    }
    assert_int_equal(point->is_used, 1);
    assert_int_equal(point->min_bytes, min);
    assert_int_equal(point->max_bytes, max);
    assert_in_range(point->last_blocks, first, end - 1);
    assert_int_equal(point->last_bytes, notes[point->last_blocks].bytes);
}

static void check_timeline(const struct cairn_point *points) {
    for (int first = 0, end; first < NOTES; first = end) {
        uint64_t number = notes[first].at_ns / totals.point_ns;
        for (end = first; end < NOTES && notes[end].at_ns / totals.point_ns == number;) end++;
        check_point(&points[number], first, end);
    }
}

static void test_extremes_are_kept(void **state) {
    (void)state;
    // the last one leaves points out, so that an odd number of them is thinned
    static const uint64_t steps_ns[] = {200, 5000, 100000, 30000000};
    for (int i = 0; i < 4; i++) {
        const struct cairn_point *points = timeline_start();
        unsigned left_out = publish((uint64_t)i + 1, steps_ns[i]);
        check_timeline(points);
        if (i == 0) assert_true(left_out > NOTES / 2);
    }
}

// A thread that does not move the total tells its point so from time to time.
static void test_last_value_is_not_old(void **state) {
    (void)state;
    struct point_seen seen = {0};
    const struct cairn_point *points = timeline_start();
    timeline_note(&seen, 0, 0, 1);
    timeline_note(&seen, STEP_BYTES, 0, 1);
    for (int i = 1; i < 1000; i++) {
        if (!timeline_has(&seen, i % STEP_BYTES, 1)) timeline_note(&seen, i % STEP_BYTES, i, 1);
        assert_in_range(points[0].last_blocks, i < LAST_NOTES ? 0 : i - LAST_NOTES + 1, i);
    }
}

// How many points there are after so long at a heap of so many bytes, noted 20,000 times.
static uint64_t points_after(int64_t bytes, uint64_t run_ns) {
    const uint64_t times = 20000;
    struct point_seen seen = {0};
    timeline_start();
    for (uint64_t i = 0; i < times; i++) timeline_note(&seen, bytes, 1, i * (run_ns / times));
    assert_in_range(used_bytes / sizeof(struct cairn_point), 1, CAIRN_POINT_LIMIT);
    return used_bytes / sizeof(struct cairn_point);
}

// The timeline of a small heap is small, however long the run; that of a large one is not.
static void test_points_go_by_the_heap(void **state) {
    (void)state;
    const uint64_t hour_ns = 3600000000000;
    assert_in_range(points_after(1 << 20, hour_ns), 256, 512);
    assert_in_range(points_after(8 << 20, hour_ns), 1024, 2048);
    assert_in_range(points_after(1 << 30, hour_ns), 2048, 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_go_by_the_heap),
        cmocka_unit_test(test_extremes_are_kept),
        cmocka_unit_test(test_last_value_is_not_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
