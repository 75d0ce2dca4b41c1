// SPDX-License-Identifier: Apache-2.0
// speedscope's own file format: one table of frames, and a profile of weighted stacks for each
// measure, of which the chosen one is shown first.
#include <inttypes.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/export/frame_table.h"
#include "tool/render/interval.h"

#define SPEEDSCOPE_SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void put_frames(struct json *json, const struct frame_table *frames) {
    char title[FRAME_TITLE_BYTES];
    json_open_object(json, "shared");
    json_open_array(json, "frames");
    for (size_t i = 0; i < frames->frames.count; i++) {
        const struct frame *frame = frames->frames.items[i];
        frame_title(frame, title, sizeof title);
        json_open_object(json, NULL);
        json_put_string(json, "name", title);
        if (frame->file) json_put_string(json, "file", frame->file);
        if (!frame->file && frame->module) json_put_string(json, "file", frame->module);
        if (frame->file && frame->line) json_put_uint(json, "line", frame->line);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static bool put_samples(struct json *json, const struct export *export, struct frame_table *frames,
                        enum measure by) {
    const struct profile *profile = export->profile;
    bool is_ok = true;
    json_open_array(json, "samples");
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        if (measure_stack(by, &profile->stacks[i]).value <= 0) continue;
        is_ok = frame_table_stack(frames, profile->stacks[i].node);
        json_open_array(json, NULL);
        for (size_t at = frames->stack.count; is_ok && at-- > 0;)
            json_put_uint(json, NULL, frames->stack.items[at]);
        json_close(json);
    }
    json_close(json);
    return is_ok;
}

// The sum; a damaged recording can claim more than there are numbers.
static int64_t put_weights(struct json *json, const struct profile *profile, enum measure by) {
    int64_t sum = 0;
    json_open_array(json, "weights");
    for (size_t i = 0; i < profile->stack_count; i++) {
        int64_t value = measure_stack(by, &profile->stacks[i]).value;
        if (value <= 0) continue;
        json_put_int(json, NULL, value);
        if (__builtin_add_overflow(sum, value, &sum)) sum = INT64_MAX;
    }
    json_close(json);
    return sum;
}

static bool put_profile(struct json *json, const struct export *export, struct frame_table *frames,
                        enum measure by) {
    char name[FRAME_TITLE_BYTES];
    struct measured whole = {0};
    for (size_t i = 0; i < export->profile->stack_count; i++)
        measured_add(&whole, measure_stack(by, &export->profile->stacks[i]));
    snprintf(name, sizeof name, "%s: %s%s%s", export->program, measure_name(by),
             interval_amount(whole, measure_about(by)->is_bytes, false).text,
             interval_samples(whole).text);
    json_open_object(json, NULL);
    json_put_string(json, "type", "sampled");
    json_put_string(json, "name", name);
    json_put_string(json, "unit", measure_about(by)->is_bytes ? "bytes" : "none");
    bool is_ok = put_samples(json, export, frames, by);
    int64_t sum = put_weights(json, export->profile, by);
    json_put_int(json, "startValue", 0);
    json_put_int(json, "endValue", sum);
    json_close(json);
    return is_ok;
}

// Measures with a profile each, up to this one; EXPORT_MEASURES: all.
static unsigned count_profiles(const struct export *export, enum measure end) {
    unsigned count = 0;
    for (unsigned by = 0; by < end; by++)
        count += measure_is_known((enum measure)by, export->profile);
    return count;
}

static bool put_all(struct json *json, const struct export *export, struct frame_table *frames) {
    char text[FRAME_TITLE_BYTES];
    bool is_ok = true;
    json_open_object(json, NULL);
    json_put_string(json, "$schema", SPEEDSCOPE_SCHEMA);
    snprintf(text, sizeof text, "cairn@%s", export->tool_version);
    json_put_string(json, "exporter", text);
    snprintf(text, sizeof text, "%s (%s)", export->program, export->trust);
    json_put_string(json, "name", text);
    bool is_usual = export->by < EXPORT_MEASURES;  // else it is one more profile
    enum measure end = is_usual ? export->by : (enum measure)EXPORT_MEASURES;
    json_put_uint(json, "activeProfileIndex", count_profiles(export, end));
    put_frames(json, frames);
    json_open_array(json, "profiles");
    for (int by = 0; by < EXPORT_MEASURES && is_ok; by++)
        is_ok = !measure_is_known((enum measure)by, export->profile) ||
                put_profile(json, export, frames, (enum measure)by);
    is_ok = is_ok && (is_usual || put_profile(json, export, frames, export->by));
    json_close(json);
    json_close(json);
    return is_ok;
}

bool export_speedscope(FILE *out, const struct export *export, struct error *error) {
    struct frame_table frames;
    struct json json;
    if (!frame_table_build(&frames, export, FRAMES_FUNCTIONS, error)) return false;
    json_start(&json, out);
    bool is_ok = put_all(&json, export, &frames);
    frame_table_free(&frames);
    return is_ok || error_set(error, "no memory for a stack");
}
