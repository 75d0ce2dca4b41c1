// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>

#include "tool/render/heap_screen.h"
#include "tool/render/json_values.h"
#include "tool/render/report_json.h"

#define HEAP_SCHEMA "cairn.heap/1"
enum { CELLS = 1024 };

static void put_sum(struct json *json, const char *key, const struct heap_sum *sum) {
    json_open_object(json, key);
    json_put_uint(json, "blocks", sum->count);
    json_put_uint(json, "bytes", sum->bytes);
    json_close(json);
}

// null where it is not known.
static void put_known(struct json *json, const char *key, uint64_t value, bool is_known) {
    if (is_known)
        json_put_uint(json, key, value);
    else
        json_put_null(json, key);
}

static void put_origin(struct json *json, const struct heap_about *about) {
    const struct heap_state *state = about->state;
    json_put_string(json, "schema", HEAP_SCHEMA);
    put_known(json, "pid", state->pid, state->pid);
    json_put_string(json, "core", state->is_core ? about->name : NULL);
    put_known(json, "pause_ns", state->pause_ns, !state->is_core);
    put_known(json, "threads", state->thread_count, !state->is_core);
    put_known(json, "copied_bytes", state->copied_bytes, !state->is_core);
    json_put_string(json, "allocator", state->is_glibc ? "glibc" : "other");
    json_put_bool(json, "recorded", state->is_recorded);
    json_put_bool(json, "sampled", state->is_sampled);
    json_put_uint(json, "broken_stretches", state->broken_count);
    json_put_uint(json, "rejected_slots", state->rejected_count);
}

static void put_classes(struct json *json, const struct heap_state *state) {
    json_open_array(json, "sizes");
    for (unsigned i = 0; i < HEAP_CLASSES; i++) {
        const struct heap_class *class = &state->classes[i];
        if (!class->used.count && !class->free.count && !class->live.count) continue;
        json_open_object(json, NULL);
        json_put_uint(json, "from", i ? 1ull << i : 0);
        put_sum(json, "used", &class->used);
        put_sum(json, "free", &class->free);
        put_sum(json, "live", &class->live);
        json_close(json);
    }
    json_close(json);
}

static void put_arenas(struct json *json, const struct heap_state *state) {
    json_open_array(json, "arenas");
    for (size_t i = 0; i < state->arenas.count; i++) {
        const struct heap_arena *arena = &state->arenas.items[i];
        json_open_object(json, NULL);
        json_put_bool(json, "main", arena->is_main);
        json_put_uint(json, "address", arena->address);
        json_put_uint(json, "bytes", arena->bytes);
        put_known(json, "resident_bytes", arena->resident_bytes, !state->is_core);
        json_put_uint(json, "used_bytes", arena->used_bytes);
        json_put_uint(json, "free_bytes", arena->free_bytes);
        json_put_uint(json, "top_bytes", arena->top_bytes);
        json_put_uint(json, "largest_free_bytes", arena->largest_free_bytes);
        json_close(json);
    }
    json_close(json);
}

static void put_heap(struct json *json, const struct heap_state *state) {
    static const char *const keys[HEAP_KINDS] = {[HEAP_USED] = "used",
                                                 [HEAP_MAPPED] = "mapped",
                                                 [HEAP_BINNED] = "free_bins",
                                                 [HEAP_FAST] = "free_fast",
                                                 [HEAP_CACHED] = "free_cached"};
    json_open_object(json, "heap");
    put_classes(json, state);
    for (unsigned i = 0; i < HEAP_KINDS; i++) put_sum(json, keys[i], &state->kinds[i]);
    put_sum(json, "live", &state->live);
    json_put_uint(json, "free_top_bytes", state->top_bytes);
    json_put_uint(json, "free_bytes", state->free_bytes);
    put_known(json, "free_resident_bytes", state->free_resident_bytes, !state->is_core);
    json_put_uint(json, "largest_free_bytes", state->largest_free_bytes);
    put_arenas(json, state);
    json_close(json);
}

// --- pages

// Whose blocks they are: a stack, a size, or blocks that were not recorded.
static bool put_owner_name(struct json *json, const struct heap_about *about, uint32_t owner) {
    const struct heap_state *state = about->state;
    char id[2 * sizeof(uint64_t) + 1] = "";
    const char *type = heap_state_type(state, owner);
    if (type) json_put_string(json, "type", type);
    if (!type && !state->is_recorded) json_put_uint(json, "size_from", owner ? 1ull << owner : 0);
    if (!state->is_recorded) return true;
    bool is_stack = owner < state->stack_count;
    const struct stack *stack = is_stack ? &about->profile->stacks[owner] : NULL;
    if (stack) snprintf(id, sizeof id, "%016" PRIx64, stack->id);
    json_put_string(json, "stack", stack ? id : NULL);
    return !stack ||
           json_values_put_frames(json, "frames", about->profile, about->names, stack->node);
}

static bool put_owner(struct json *json, const struct heap_about *about, uint32_t owner) {
    const struct residency_owner *values = &about->state->residency.owners[owner];
    json_open_object(json, NULL);
    json_put_uint(json, "kept_bytes", values->kept_bytes);
    put_known(json, "alone_bytes", values->alone_bytes, !about->state->is_sampled);
    json_put_uint(json, "live_bytes", values->live_bytes);
    json_put_uint(json, "live_blocks", values->blocks);
    bool is_ok = put_owner_name(json, about, owner);
    json_close(json);
    return is_ok;
}

static void put_areas(struct json *json, const struct heap_state *state) {
    json_open_array(json, "areas");
    for (size_t i = 0; i < state->areas.count; i++) {
        const struct heap_area *area = &state->areas.items[i];
        json_open_object(json, NULL);
        json_put_uint(json, "start", area->start);
        json_put_uint(json, "end", area->end);
        json_close(json);
    }
    json_close(json);
}

static bool put_pages(struct json *json, const struct heap_about *about,
                      const struct view_options *view) {
    const struct residency *residency = &about->state->residency;
    size_t count;
    uint32_t *ranking = residency_rank(residency, &count);
    bool is_ok = ranking != NULL;
    if (view->top && view->top < count) count = view->top;
    json_open_object(json, "pages");
    json_put_bool(json, "residency_known", !about->state->is_core);
    json_put_uint(json, "page_bytes", residency->page_bytes);
    json_put_uint(json, "range_bytes", residency->range_bytes);
    json_put_uint(json, "resident_bytes", residency->resident_bytes);
    json_put_uint(json, "kept_bytes", residency->kept_bytes);
    json_put_uint(json, "empty_bytes", heap_state_empty_bytes(about->state));
    json_put_uint(json, "live_bytes", residency->live_bytes);
    json_put_uint(json, "blocks_elsewhere", residency->outside_blocks);
    put_areas(json, about->state);
    json_open_array(json, "owners");
    for (size_t i = 0; i < count && is_ok; i++) is_ok = put_owner(json, about, ranking[i]);
    json_close(json);
    json_close(json);
    free(ranking);
    return is_ok;
}

bool heap_json_print(FILE *out, const struct heap_about *about, const struct view_options *view,
                     bool has_pages, struct error *error) {
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    put_origin(&json, about);
    put_heap(&json, about->state);
    bool is_ok = (!has_pages || put_pages(&json, about, view)) &&
                 heap_map_json_put(&json, about->state, CELLS);
    json_close(&json);
    return is_ok || error_set(error, "no memory for the list of stacks");
}

// --- the map of the heap

static void put_strip(struct json *json, const struct heap_map *map,
                      const struct heap_strip *strip) {
    static const char *const keys[] = {[HEAP_AREA_MAIN] = "main",
                                       [HEAP_AREA_ARENA] = "arenas",
                                       [HEAP_AREA_BLOCKS] = "blocks",
                                       [HEAP_AREA_OTHER] = "other"};
    json_open_object(json, NULL);
    json_put_string(json, "kind", keys[strip->kind]);
    json_put_uint(json, "areas", strip->area_count);
    json_put_uint(json, "bytes", strip->bytes);
    json_put_uint(json, "resident_bytes", strip->resident_bytes);
    json_put_uint(json, "live_bytes", strip->live_bytes);
    json_open_array(json, "cells");
    for (size_t i = 0; i < strip->cell_count; i++) {
        uint8_t cell = map->cells.items[strip->first_cell + i];
        json_put_int(json, NULL, cell == HEAP_CELL_ABSENT ? -1 : cell);
    }
    json_close(json);
    json_close(json);
}

bool heap_map_json_put(struct json *json, const struct heap_state *state, size_t cell_limit) {
    struct heap_map map;
    if (!heap_map_build(state, cell_limit, &map, NULL)) return false;
    json_open_object(json, "map");
    json_put_uint(json, "cell_bytes", map.cell_bytes);
    json_open_array(json, "strips");
    for (size_t i = 0; i < map.strips.count; i++) put_strip(json, &map, &map.strips.items[i]);
    json_close(json);
    json_close(json);
    heap_map_free(&map);
    return true;
}
