// SPDX-License-Identifier: Apache-2.0
// A JSON object a line, one for each stack (ndjson.org), for jq, data bases and log pipelines: its
// values under the names of the JSON report, how sure they are if they are estimates, and its
// frames as texts, outermost first.
#include <inttypes.h>
#include <stdlib.h>

#include "tool/export/frame_table.h"
#include "tool/model/all_heaps.h"
#include "tool/render/json_values.h"

static void put_frames(struct json *json, const struct frame_table *frames) {
    char title[FRAME_TITLE_BYTES];
    json_open_array(json, "frames");
    for (size_t i = frames->stack.count; i-- > 0;) {
        frame_title(frames->frames.items[frames->stack.items[i]], title, sizeof title);
        json_put_string(json, NULL, title);
    }
    json_close(json);
}

static bool put_line(FILE *out, const struct profile *profile, const struct stack *stack,
                     struct frame_table *frames) {
    const char *heap = profile_heap_of(profile, stack);
    char id[sizeof "0123456789abcdef"];
    struct json json;
    if (!frame_table_stack(frames, stack->node)) return false;
    snprintf(id, sizeof id, "%016" PRIx64, stack->id);
    json_start_members(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "id", id);
    json_put_string(&json, "incomplete", stack->cut ? cut_key(stack->cut) : NULL);
    if (heap) json_put_string(&json, "heap", heap);
    json_values_put_values(&json, stack, profile);
    if (profile->sampling.is_on)
        json_values_put_estimates(&json, stack_more(stack)->estimates, false);
    put_frames(&json, frames);
    json_close(&json);
    fputc('\n', out);
    return true;
}

bool export_ndjson(FILE *out, const struct export *export, struct error *error) {
    struct frame_table frames;
    size_t count;
    if (!frame_table_build(&frames, export, FRAMES_PICTURE, error)) return false;
    uint32_t *ranking = measure_rank_all(export->by, export->profile, &count);
    bool is_ok = ranking != NULL;
    for (size_t i = 0; i < count && is_ok; i++)
        is_ok = put_line(out, export->profile, &export->profile->stacks[ranking[i]], &frames);
    free(ranking);
    frame_table_free(&frames);
    return is_ok || error_set(error, "no memory for lines");
}
