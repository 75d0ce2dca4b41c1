// SPDX-License-Identifier: Apache-2.0
// The chunk "heap": the picture of a heap by address, and the stacks that keep most of it.
#include <stdlib.h>

#include "tool/base/json.h"
#include "tool/render/heap_screen.h"
#include "tool/web/web.h"

enum { CELLS = 8192, OWNERS = 8 };

// Rows of stack, bytes kept, bytes live; the stacks are those of the profile, by number.
static bool put_owners(struct json *json, const struct heap_state *state) {
    size_t count;
    uint32_t *ranking = residency_rank(&state->residency, &count);
    json_open_array(json, "owners");
    for (size_t i = 0; ranking && i < count && i < OWNERS; i++) {
        const struct residency_owner *owner = &state->residency.owners[ranking[i]];
        json_open_array(json, NULL);
        json_put_int(json, NULL, ranking[i] < state->stack_count ? (int64_t)ranking[i] : -1);
        json_put_uint(json, NULL, owner->kept_bytes);
        json_put_uint(json, NULL, owner->live_bytes);
        json_close(json);
    }
    json_close(json);
    free(ranking);
    return ranking != NULL;
}

static bool put_state(struct json *json, const struct heap_state *state) {
    json_open_object(json, NULL);
    json_put_bool(json, "is_core", state->is_core);
    json_put_uint(json, "resident", state->residency.resident_bytes);
    json_put_uint(json, "live", state->residency.live_bytes);
    bool is_ok = put_owners(json, state) && heap_map_json_put(json, state, CELLS);
    json_close(json);
    return is_ok;
}

bool web_put_heap(struct web *web, const struct heap_state *state, struct error *error) {
    struct json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool is_ok = out != NULL;
    if (is_ok) {
        json_start(&json, out);
        is_ok = put_state(&json, state);
        is_ok = !fclose(out) && is_ok;
    }
    if (is_ok) sink_put_chunk(&web->sink, "heap", CHUNK_JSON, text, size);
    free(text);
    return is_ok || error_set(error, "no memory for the picture of the heap");
}
