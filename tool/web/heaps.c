// SPDX-License-Identifier: Apache-2.0
#include "tool/web/heaps.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/model/contexts.h"
#include "tool/model/heaps.h"
#include "tool/model/narrow.h"

enum { NAME_BYTES = 4096 };

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

static void put_part(struct heaps *heaps, const struct heap_part *part) {
    const struct cairn_heap_stack *entry = &part->entry;
    const struct profile *profile = heaps->profile;
    uint32_t index = entry->scope < heaps->names.scopes.count ? heaps->of_scope[entry->scope] : 0;
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

static bool put_all(struct heaps *heaps, struct sink *sink) {
    heaps->of_scope = calloc(heaps->names.scopes.count + 1, sizeof *heaps->of_scope);
    if (!heaps->of_scope) return false;
    for (size_t i = 0; i < heaps->names.list.count; i++)
        heaps->of_scope[heaps->names.list.items[i].scope] = (uint32_t)i + 1;
    if (!put_names(heaps, sink)) return false;
    for (size_t i = 0; i < heaps->profile->heap_part_count; i++)
        put_part(heaps, &heaps->profile->heap_parts[i]);
    for (size_t i = 0; i < COLUMNS; i++)
        sink_put_column(sink, columns[i], CHUNK_NUMBERS, &heaps->columns[i]);
    put_points(heaps, sink);
    return true;
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
