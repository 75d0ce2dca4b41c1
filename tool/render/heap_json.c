// SPDX-License-Identifier: Apache-2.0
#include "tool/render/heap_screen.h"

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
