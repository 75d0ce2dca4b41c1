// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/timeline.h"

#include "runtime/sys/sys.h"

// Points take no more than this share of the largest heap so far, but for the first ones.
enum { POINTS_SHARE = 64, FEWEST_POINTS = 512 };

static struct region region;
static struct cairn_totals *totals;

static struct cairn_point *point_at(uint64_t index) {
    return (struct cairn_point *)region.base + index;
}

void timeline_open(struct region points, struct cairn_totals *shared) {
    region = points;
    totals = shared;
    totals->point_ns = POINT_FIRST_NS;
    totals->point_lock = 0;
}

void point_merge(struct cairn_point *into, const struct cairn_point *first,
                 const struct cairn_point *second) {
    struct cairn_point merged = second->is_used ? *second : *first;
    if (first->is_used && second->is_used) {
        if (first->min_bytes < merged.min_bytes) merged.min_bytes = first->min_bytes;
        if (first->max_bytes > merged.max_bytes) merged.max_bytes = first->max_bytes;
    }
    *into = merged;
}

// Another thread is thinning. The lock is the tid of who does; one's own was left behind when a
// signal handler jumped out.
static bool is_locked(void) {
    uint32_t owner = __atomic_load_n(&totals->point_lock, __ATOMIC_RELAXED);
    return unlikely(owner) && owner != (uint32_t)sys_tid();
}

static uint64_t interval_now(void) {
    return __atomic_load_n(&totals->point_ns, __ATOMIC_RELAXED);
}

// Makes the points up to `index` exist.
static bool timeline_extend(uint64_t index) {
    uint64_t end = (index + 1) * sizeof(struct cairn_point);
    uint64_t used = __atomic_load_n(region.used_bytes, __ATOMIC_RELAXED);
    if (used >= end) return true;
    if (!region_claim(&region, end)) return false;
    while (used < end && !__atomic_compare_exchange_n(region.used_bytes, &used, end, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return true;
}

static uint64_t point_count(void) {
    return __atomic_load_n(region.used_bytes, __ATOMIC_RELAXED) / sizeof(struct cairn_point);
}

// Thins the points that exist so far; a last one without a neighbour gets an empty one.
static void double_interval(void) {
    if (point_count() % 2) timeline_extend(point_count());
    uint64_t count = point_count();
    for (uint64_t i = 0; i < count / 2; i++)
        point_merge(point_at(i), point_at(2 * i), point_at(2 * i + 1));
    for (uint64_t i = count / 2; i < count; i++) *point_at(i) = (struct cairn_point){0};
    __atomic_store_n(&totals->point_ns, totals->point_ns * 2, __ATOMIC_RELAXED);
}

// One thread does it, others drop their notes meanwhile; those that found the same interval too
// short, and come later, find another one.
static COLD void timeline_thin(uint64_t interval_ns) {
    uint32_t owner = 0, tid = (uint32_t)sys_tid();
    if (!__atomic_compare_exchange_n(&totals->point_lock, &owner, tid, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED) &&
        owner != tid)
        return;
    if (interval_now() == interval_ns) double_interval();
    __atomic_store_n(&totals->point_lock, 0, __ATOMIC_RELEASE);
}

static void point_lower(int64_t *place, int64_t value) {
    int64_t there = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (value < there && !__atomic_compare_exchange_n(place, &there, value, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void point_raise(int64_t *place, int64_t value) {
    int64_t there = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (value > there && !__atomic_compare_exchange_n(place, &there, value, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

// How many points there may be at a heap of so many bytes.
static uint64_t point_limit(int64_t bytes) {
    uint64_t peak = __atomic_load_n(&totals->peak_bytes, __ATOMIC_RELAXED);
    if (bytes > 0 && (uint64_t)bytes > peak) peak = (uint64_t)bytes;
    uint64_t count = peak / POINTS_SHARE / sizeof(struct cairn_point);
    if (count < FEWEST_POINTS) return FEWEST_POINTS;
    return count < CAIRN_POINT_LIMIT ? count : CAIRN_POINT_LIMIT;
}

// Notes in a row that the point does without.
enum { NOTES_LEFT_OUT = 7 };

bool timeline_has(struct point_seen *seen, int64_t bytes, uint64_t now_ns) {
    uint64_t interval_ns = interval_now();
    if (bytes < seen->min_bytes || bytes > seen->max_bytes || interval_ns != seen->interval_ns ||
        now_ns / interval_ns != seen->number || seen->left_out == NOTES_LEFT_OUT)
        return false;
    seen->left_out++;
    return true;
}

bool timeline_is_due(const struct point_seen *seen, uint64_t now_ns) {
    const uint64_t pause_ns = 100000000;
    return now_ns >= seen->number * seen->interval_ns + pause_ns;
}

void timeline_note(struct point_seen *seen, int64_t bytes, int64_t blocks, uint64_t now_ns) {
    if (!region.base || is_locked()) return;
    uint64_t interval_ns = interval_now();
    for (; now_ns / interval_ns >= point_limit(bytes); interval_ns = interval_now()) {
        timeline_thin(interval_ns);
        if (is_locked()) return;
    }
    uint64_t index = now_ns / interval_ns;
    if (!timeline_extend(index)) return;
    struct cairn_point *point = point_at(index);
    if (!__atomic_exchange_n(&point->is_used, 1, __ATOMIC_RELAXED))
        point->min_bytes = point->max_bytes = bytes;
    point_lower(&point->min_bytes, bytes);
    point_raise(&point->max_bytes, bytes);
    if (seen->number != index || seen->interval_ns != interval_ns)
        *seen = (struct point_seen){index, interval_ns, bytes, bytes, 0};
    if (bytes < seen->min_bytes) seen->min_bytes = bytes;
    if (bytes > seen->max_bytes) seen->max_bytes = bytes;
    seen->left_out = 0;
    point->last_bytes = bytes;
    point->last_blocks = blocks;
    point->allocated_bytes = __atomic_load_n(&totals->allocated_bytes, __ATOMIC_RELAXED);
    point->allocations = __atomic_load_n(&totals->allocations, __ATOMIC_RELAXED);
}
