// SPDX-License-Identifier: Apache-2.0
#include "tool/web/heaps.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/model/contexts.h"
#include "tool/model/heaps.h"
#include "tool/model/narrow.h"
#include "tool/model/shape.h"
#include "tool/model/snapshots.h"

// Sizes are on the page of the stacks that allocated most.
enum { NAME_BYTES = 4096, SHAPES_MAX = 2000, SIZES_MAX = 16 };

static const char *const columns[] = {
    "heap.name",          "heap.node",           "heap.slot",
    "heap.context",       "heap.peak_bytes",     "heap.peak_blocks",
    "heap.at_exit_bytes", "heap.at_exit_blocks", "heap.allocated_bytes",
    "heap.allocations",   "heap.freed_bytes",    "heap.frees"};
#define COLUMNS (sizeof columns / sizeof *columns)

struct heaps {
    const struct profile *profile;
    struct heap_names names;
    struct contexts contexts;
    uint32_t *of_scope;  // index in names, plus 1; 0: none
    struct column columns[COLUMNS];
    uint32_t last_node;
};

static void put_name(const struct heaps *heaps, struct json *json, const struct heap_name *name) {
    char safe[NAME_BYTES];
    uint64_t peak_ns = name->is_peak_now ? recording_last_ns(heaps->profile->recording)
                                         : heaps->names.scopes.list[name->heap].entry.heap_peak_ns;
    struct cairn_heap_points points;
    bool has_points = heap_points_find(heaps->profile->recording, name->scope, &points);
    const uint64_t point_ns = has_points ? points.point_ns : 0;
    text_escape(safe, sizeof safe, heap_name_path(&heaps->names, name));
    json_open_object(json, NULL);
    json_put_string(json, "name", safe);
    json_put_uint(json, "heap", heaps->of_scope[name->heap] - 1);
    json_put_uint(json, "peak_ns", peak_ns);
    json_put_uint(json, "point_ns", point_ns);
    json_close(json);
}

static bool put_names(const struct heaps *heaps, struct sink *sink) {
    char *text = NULL;
    size_t size = 0;
    struct json json;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&json, out);
    json_open_array(&json, NULL);
    for (size_t i = 0; i < heaps->names.list.count; i++)
        put_name(heaps, &json, &heaps->names.list.items[i]);
    json_close(&json);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(sink, "heaps", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

// The number, plus 1, of its name; 0: it has no row.
static uint32_t name_of(const struct heaps *heaps, const struct heap_part *part) {
    uint32_t scope = part->entry.scope;
    return scope < heaps->names.scopes.count ? heaps->of_scope[scope] : 0;
}

static void put_part(struct heaps *heaps, const struct heap_part *part) {
    const struct cairn_heap_stack *entry = &part->entry;
    const struct profile *profile = heaps->profile;
    uint32_t index = name_of(heaps, part);
    uint16_t slot = 0;
    if (!index) return;
    const struct heap_name *name = &heaps->names.list.items[index - 1];
    struct cell_values values = heap_name_values(&heaps->names, name, entry);
    bool has_cell = entry->cell != CAIRN_CELL_OTHER && entry->cell < profile->cell_count;
    bool has_slot = has_cell && narrow_cell_slot(profile, entry->cell, &slot);
    const int64_t row[COLUMNS] = {
        index - 1,
        (int64_t)part->node - heaps->last_node,
        has_slot ? slot : -1,
        has_cell ? contexts_of_cell(&heaps->contexts, profile, entry->cell) : 0,
        values.peak_bytes,
        values.peak_blocks,
        values.exit_bytes,
        values.exit_blocks,
        (int64_t)values.allocated_bytes,
        (int64_t)values.calls,
        (int64_t)values.freed_bytes,
        (int64_t)values.frees};
    heaps->last_node = part->node;
    for (size_t i = 0; i < COLUMNS; i++) column_put_number(&heaps->columns[i], row[i]);
}

// Of all heaps, one after the other, as put_points has them of malloc's.
static void put_points(const struct heaps *heaps, struct sink *sink) {
    static const char *const names[] = {"heap_point.heap",      "heap_point.index",
                                        "heap_point.high",      "heap_point.last",
                                        "heap_point.allocated", "heap_point.calls"};
    struct column series[sizeof names / sizeof *names] = {0};
    const size_t count = sizeof names / sizeof *names;
    struct cairn_heap_points points;
    for (size_t i = 0; i < heaps->names.list.count; i++) {
        const struct heap_name *name = &heaps->names.list.items[i];
        size_t before = 0;
        if (!heap_points_find(heaps->profile->recording, name->scope, &points)) continue;
        for (size_t k = 0; k < CAIRN_HEAP_POINT_COUNT; k++) {
            const struct cairn_point *point = &points.points[k];
            if (!point->is_used) continue;
            const int64_t row[] = {
                (int64_t)i,        (int64_t)(k - before),           point->max_bytes,
                point->last_bytes, (int64_t)point->allocated_bytes, (int64_t)point->allocations};
            before = k;
            for (size_t at = 0; at < count; at++) column_put_number(&series[at], row[at]);
        }
    }
    for (size_t at = 0; at < count; at++)
        sink_put_column(sink, names[at], CHUNK_NUMBERS, &series[at]);
}

static int compare_most(const void *a, const void *b) {
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? 1 : -(first > second);
}

// Rows that allocated less are left out.
static uint64_t least_of_shapes(const struct profile *profile, uint64_t *sums) {
    for (size_t i = 0; i < profile->heap_part_count; i++)
        sums[i] = profile->heap_parts[i].entry.allocated_bytes;
    qsort(sums, profile->heap_part_count, sizeof *sums, compare_most);
    return profile->heap_part_count > SHAPES_MAX ? sums[SHAPES_MAX - 1] : 0;
}

static void put_shape(const struct heaps *heaps, struct json *json, size_t index, size_t row) {
    struct shape_sizes sizes;
    struct shape_ages ages;
    size_t count = CAIRN_AGE_BUCKETS;
    shape_part_sizes(heaps->profile, index, &sizes);
    json_open_object(json, NULL);
    json_put_uint(json, "row", row);
    json_open_array(json, "sizes");
    for (size_t i = 0; i < sizes.count && i < SIZES_MAX; i++) {
        json_open_array(json, NULL);
        json_put_uint(json, NULL, sizes.list[i].size);
        json_put_uint(json, NULL, sizes.list[i].count);
        json_close(json);
    }
    json_close(json);
    if (shape_part_ages(heaps->profile, index, &ages)) {
        while (count && !ages.ms[count - 1]) count--;
        json_open_array(json, "ages_ms");
        for (size_t i = 0; i < count; i++) json_put_uint(json, NULL, ages.ms[i]);
        json_close(json);
    }
    json_close(json);
}

static bool put_shapes(const struct heaps *heaps, struct sink *sink) {
    const struct profile *profile = heaps->profile;
    char *text = NULL;
    size_t size = 0, row = 0;
    struct json json;
    uint64_t *sums = calloc(profile->heap_part_count + 1, sizeof *sums);
    FILE *out = sums ? open_memstream(&text, &size) : NULL;
    uint64_t least = out ? least_of_shapes(profile, sums) : 0;
    free(sums);
    if (!out) return false;
    json_start(&json, out);
    json_open_array(&json, NULL);
    for (size_t i = 0; i < profile->heap_part_count; i++) {
        if (!name_of(heaps, &profile->heap_parts[i])) continue;
        if (profile->heap_parts[i].entry.allocated_bytes >= least) put_shape(heaps, &json, i, row);
        row++;
    }
    json_close(&json);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(sink, "heapShapes", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

static bool find_names(struct heaps *heaps) {
    heaps->of_scope = calloc(heaps->names.scopes.count + 1, sizeof *heaps->of_scope);
    if (!heaps->of_scope) return false;
    for (size_t i = 0; i < heaps->names.list.count; i++)
        heaps->of_scope[heaps->names.list.items[i].scope] = (uint32_t)i + 1;
    return true;
}

static bool put_all(struct heaps *heaps, struct sink *sink) {
    if (!find_names(heaps) || !put_names(heaps, sink)) return false;
    for (size_t i = 0; i < heaps->profile->heap_part_count; i++)
        put_part(heaps, &heaps->profile->heap_parts[i]);
    for (size_t i = 0; i < COLUMNS; i++)
        sink_put_column(sink, columns[i], CHUNK_NUMBERS, &heaps->columns[i]);
    put_points(heaps, sink);
    return !recording_knows_heap_blocks(heaps->profile->recording) || put_shapes(heaps, sink);
}

// A column a snapshot: what each row held more than at the one before.
static bool put_held(const struct heaps *heaps, const struct snapshots *snapshots,
                     const size_t *chosen, size_t count, struct sink *sink) {
    const struct profile *profile = heaps->profile;
    int64_t *before = calloc(profile->heap_part_count + 1, sizeof *before);
    for (size_t i = 0; before && i < count; i++) {
        struct column column = {0};
        for (size_t at = 0; at < profile->heap_part_count; at++) {
            const struct heap_part *part = &profile->heap_parts[at];
            if (!name_of(heaps, part)) continue;
            int64_t bytes = snapshots_cell_live(snapshots, chosen[i], part->number).bytes;
            column_put_number(&column, (int64_t)((uint64_t)bytes - (uint64_t)before[at]));
            before[at] = bytes;
        }
        sink_put_column(sink, "heap_snapshot.bytes", CHUNK_NUMBERS, &column);
    }
    free(before);
    return before != NULL;
}

bool heaps_put_held(struct sink *sink, const struct profile *profile, const size_t *chosen,
                    size_t count, struct error *error) {
    struct heaps heaps = {.profile = profile};
    struct snapshots snapshots = {0};
    bool is_known = profile->heap_part_count && !profile->heap &&
                    recording_knows_heap_blocks(profile->recording);
    if (!is_known) return true;
    bool is_ok = heap_names_read(&heaps.names, profile->recording) && find_names(&heaps) &&
                 snapshots_build_heaps(&snapshots, profile, error) &&
                 put_held(&heaps, &snapshots, chosen, count, sink);
    snapshots_free(&snapshots);
    free(heaps.of_scope);
    heap_names_free(&heaps.names);
    return is_ok || error_set(error, "no memory for the heaps of this recording");
}

bool heaps_put(struct sink *sink, const struct profile *profile, struct error *error) {
    struct heaps heaps = {.profile = profile};
    if (!profile->heap_part_count || profile->heap) return true;
    bool is_ok = heap_names_read(&heaps.names, profile->recording) &&
                 contexts_read(&heaps.contexts, profile->recording, NULL) && put_all(&heaps, sink);
    free(heaps.of_scope);
    contexts_free(&heaps.contexts);
    heap_names_free(&heaps.names);
    return is_ok || error_set(error, "no memory for the heaps of this recording");
}
