// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/heap_points.h"

#include <stdbool.h>
#include <string.h>

#include "format/format.h"
#include "runtime/record/timeline.h"
#include "runtime/sink/sink.h"

static struct region heaps;

struct region *heap_points_region(void) {
    heaps = sink_region(CAIRN_SECTION_HEAP_POINTS);
    return &heaps;
}

static struct cairn_heap_points *points_at(uint32_t number) {
    return (struct cairn_heap_points *)heaps.base + (number - 1);
}

uint32_t heap_points_make(uint32_t scope) {
    struct cairn_heap_points *points = heaps.base ? region_take(&heaps, sizeof *points) : NULL;
    if (!points) return 0;
    points->scope = scope;
    points->point_ns = POINT_FIRST_NS;
    __atomic_store_n(&points->is_ready, 1, __ATOMIC_RELEASE);
    return (uint32_t)(points - (struct cairn_heap_points *)heaps.base) + 1;
}

static COLD void thin(struct cairn_heap_points *points) {
    const uint32_t half = CAIRN_HEAP_POINT_COUNT / 2;
    struct cairn_point *at = points->points;
    for (uint32_t i = 0; i < half; i++) point_merge(&at[i], &at[2 * i], &at[2 * i + 1]);
    memset(&at[half], 0, half * sizeof *at);
    points->point_ns *= 2;
}

void heap_points_note(uint32_t number, const struct cairn_point *now, uint64_t now_ns) {
    if (!number) return;
    struct cairn_heap_points *points = points_at(number);
    uint64_t index = now_ns / points->point_ns;
    for (; index >= CAIRN_HEAP_POINT_COUNT; index /= 2) thin(points);
    struct cairn_point *point = &points->points[index], noted = *now;
    const bool is_first = !point->is_used;
    noted.min_bytes =
        is_first || point->min_bytes > now->last_bytes ? now->last_bytes : point->min_bytes;
    noted.max_bytes =
        is_first || point->max_bytes < now->last_bytes ? now->last_bytes : point->max_bytes;
    noted.is_used = 1;
    *point = noted;
}

void heap_points_inherit(void) {
    uint64_t bytes = heaps.base ? *heaps.used_bytes : 0;
    if (bytes > heaps.capacity_bytes) bytes = heaps.capacity_bytes;
    for (uint32_t number = 1; number <= bytes / sizeof(struct cairn_heap_points); number++) {
        struct cairn_heap_points *points = points_at(number);
        *points = (struct cairn_heap_points){
            .scope = points->scope, .is_ready = points->is_ready, .point_ns = POINT_FIRST_NS};
    }
}
