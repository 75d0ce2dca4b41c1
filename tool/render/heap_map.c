// SPDX-License-Identifier: Apache-2.0
#include "tool/render/heap_map.h"

#include <inttypes.h>

#include "tool/base/units.h"

enum { KINDS = HEAP_AREA_OTHER + 1, PAGE = RESIDENCY_PAGE_BYTES, PERCENT = 100 };
enum { LINE_CELLS = 64, LINES = 16, LABEL_COLUMNS = 14 };

const char *heap_area_name(enum heap_area_kind kind) {
    static const char *const names[KINDS] = {
        [HEAP_AREA_MAIN] = "main arena",
        [HEAP_AREA_ARENA] = "arenas of threads",
        [HEAP_AREA_BLOCKS] = "blocks with mappings of their own",
        [HEAP_AREA_OTHER] = "the allocator's memory",
    };
    return names[kind];
}

// --- cells

// The cell that pages are being added to.
struct filling {
    struct heap_map *map;
    uint64_t start, pages, pages_most, resident_bytes, live_bytes;
    bool is_bad;
};

static void end_cell(struct filling *filling) {
    if (!filling->pages) return;
    uint8_t *cell = array_push(&filling->map->cells);
    uint64_t *address = array_push(&filling->map->addresses);
    filling->is_bad |= !cell || !address;
    if (cell)
        *cell = filling->resident_bytes
                    ? (uint8_t)(filling->live_bytes * PERCENT / filling->resident_bytes)
                    : HEAP_CELL_ABSENT;
    if (address) *address = filling->start;
    filling->pages = filling->resident_bytes = filling->live_bytes = 0;
}

static void add_area(struct filling *filling, struct heap_strip *strip,
                     const struct heap_state *state, const struct heap_area *area) {
    size_t count = (area->end - area->start) / PAGE;
    for (size_t i = 0; i < count; i++) {
        uint16_t live = state->residency.pages.items[area->first_page + i];
        if (!filling->pages) filling->start = area->start + i * PAGE;
        if (live != RESIDENCY_ABSENT) {
            filling->resident_bytes += PAGE;
            filling->live_bytes += live;
            strip->resident_bytes += PAGE;
            strip->live_bytes += live;
        }
        if (++filling->pages == filling->pages_most) end_cell(filling);
    }
    strip->bytes += area->end - area->start;
    strip->area_count++;
}

static bool add_strip(struct heap_map *map, const struct heap_state *state,
                      enum heap_area_kind kind) {
    struct heap_strip strip = {.kind = kind, .first_cell = map->cells.count};
    struct filling filling = {.map = map, .pages_most = map->cell_bytes / PAGE};
    for (size_t i = 0; i < state->areas.count; i++)
        if (state->areas.items[i].kind == kind)
            add_area(&filling, &strip, state, &state->areas.items[i]);
    end_cell(&filling);
    strip.cell_count = map->cells.count - strip.first_cell;
    if (!strip.cell_count) return !filling.is_bad;
    struct heap_strip *slot = array_push(&map->strips);
    if (slot) *slot = strip;
    return slot && !filling.is_bad;
}

// The smallest power of two pages with which the cells are not more than allowed.
static uint64_t choose_cell(const struct heap_state *state, size_t cell_limit) {
    uint64_t cell = PAGE;
    while (state->residency.range_bytes / cell > cell_limit) cell *= 2;
    return cell;
}

bool heap_map_build(const struct heap_state *state, size_t cell_limit, struct heap_map *map,
                    struct error *error) {
    *map = (struct heap_map){.cell_bytes = choose_cell(state, cell_limit)};
    bool is_ok = true;
    for (int kind = 0; kind < KINDS && is_ok; kind++)
        is_ok = add_strip(map, state, (enum heap_area_kind)kind);
    if (is_ok) return true;
    heap_map_free(map);
    return error_set(error, "no memory for the picture of the heap");
}

void heap_map_free(struct heap_map *map) {
    array_free(&map->strips);
    array_free(&map->cells);
    array_free(&map->addresses);
}

// --- characters

static const char *character_of(uint8_t cell) {
    static const char *const shades[] = {"\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93",
                                         "\xe2\x96\x88"};
    enum { STEP = 25, DARKEST = 3 };
    if (cell == HEAP_CELL_ABSENT) return "\xc2\xb7";
    return shades[cell / STEP < DARKEST ? cell / STEP : DARKEST];
}

static void print_line(const struct terminal *terminal, const struct heap_map *map, size_t first,
                       size_t count) {
    terminal_print(terminal, STYLE_DIM, "%12" PRIx64 "  ", map->addresses.items[first]);
    for (size_t i = 0; i < count; i++) {
        uint8_t cell = map->cells.items[first + i];
        terminal_print(terminal, cell == HEAP_CELL_ABSENT ? STYLE_DIM : STYLE_NAME, "%s",
                       character_of(cell));
    }
    fputc('\n', terminal->out);
}

static bool is_absent(const struct heap_map *map, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (map->cells.items[first + i] != HEAP_CELL_ABSENT) return false;
    return true;
}

// Lines of which nothing is resident are left out.
static void print_strip(const struct terminal *terminal, const struct heap_state *state,
                        const struct heap_map *map, const struct heap_strip *strip, size_t columns,
                        bool is_plain) {
    terminal_print(terminal, STYLE_STRONG, "%s", heap_area_name(strip->kind));
    fprintf(terminal->out, ": %s", units_size_as((int64_t)strip->bytes, is_plain).text);
    if (!state->is_core)
        fprintf(terminal->out, ", %s resident",
                units_size_as((int64_t)strip->resident_bytes, is_plain).text);
    fprintf(terminal->out, ", %s live\n", units_size_as((int64_t)strip->live_bytes, is_plain).text);
    size_t end = strip->first_cell + strip->cell_count;
    for (size_t at = strip->first_cell; at < end; at += columns) {
        size_t count = end - at < columns ? end - at : columns;
        if (!is_absent(map, at, count)) print_line(terminal, map, at, count);
    }
}

bool heap_map_print(const struct terminal *terminal, const struct heap_state *state,
                    const struct view_options *view, struct error *error) {
    struct heap_map map;
    size_t columns = terminal->columns > LABEL_COLUMNS + LINE_CELLS ? LINE_CELLS
                     : terminal->columns > 2 * LABEL_COLUMNS ? terminal->columns - LABEL_COLUMNS
                                                             : LABEL_COLUMNS;
    if (!heap_map_build(state, columns * LINES, &map, error)) return false;
    for (size_t i = 0; i < map.strips.count; i++)
        print_strip(terminal, state, &map, &map.strips.items[i], columns, view->is_plain_number);
    terminal_print(terminal, STYLE_DIM,
                   "%s each; live share of %s: \xe2\x96\x88 75 \xe2\x96\x93 50 \xe2\x96\x92 25 "
                   "\xe2\x96\x91 0 %%%s\n",
                   units_size_as((int64_t)map.cell_bytes, view->is_plain_number).text,
                   state->is_core ? "what is there" : "resident",
                   state->is_core ? "" : ", \xc2\xb7 none resident");
    heap_map_free(&map);
    return true;
}

// --- JSON

static void put_strip(struct json *json, const struct heap_map *map,
                      const struct heap_strip *strip) {
    static const char *const keys[KINDS] = {[HEAP_AREA_MAIN] = "main",
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
