// SPDX-License-Identifier: Apache-2.0
#include "tool/render/top_json.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/render/json_values.h"
#include "tool/render/report_json.h"
#include "tool/render/trust.h"

#define TOP_SCHEMA "cairn.top/1"
enum { NAME_BYTES = 256, ID_BYTES = 20 };

static int64_t whole(double value) {
    const double most = 0x1p62;
    return (int64_t)(value < most ? value : most);
}

static void put_rate(struct json *json, struct live_rate rate) {
    json_put_int(json, "allocated_bytes_per_s", whole(rate.bytes));
    json_put_int(json, "allocations_per_s", whole(rate.calls));
}

// Half of an estimate's 95 % interval; null: it is exact.
static void put_interval(struct json *json, const char *key, struct measured measured) {
    if (measured_interval(measured))
        json_put_int(json, key, measured_interval(measured));
    else
        json_put_null(json, key);
}

// How many are behind it; null: nothing is sampled.
static void put_samples(struct json *json, const char *key, struct measured measured,
                        bool is_sampled) {
    if (is_sampled)
        json_put_int(json, key, measured_samples(measured));
    else
        json_put_null(json, key);
}

static void put_process(struct json *json, const struct top_view *view) {
    const struct profile *profile = &view->live->profile;
    const struct cairn_header *header = &profile->recording->header;
    char name[NAME_BYTES];
    program_name(profile, name, sizeof name);
    json_put_string(json, "program", name);
    json_put_int(json, "pid", view->pid);
    json_put_bool(json, "is_over", view->over != NULL);
    json_put_bool(json, "is_off", cairn_is_off(&header->control));
    json_put_bool(json, "exact", profile_is_exact(profile));
    json_put_bool(json, "sampled", profile->sampling.is_on != 0);
    json_put_uint(json, "at_ns", live_now_ns(view->live));
    json_put_int(json, "live_bytes", profile->exit_bytes);
    json_put_int(json, "live_blocks", profile->exit_blocks);
    bool is_sampled = profile->sampling.is_on != 0;
    struct measured held = measure_total(MEASURE_EXIT, profile);
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    struct measured slope = live_slope_measured(view->live);
    put_interval(json, "live_interval_bytes", held);
    put_interval(json, "live_interval_blocks", measure_total(MEASURE_EXIT_BLOCKS, profile));
    put_samples(json, "live_samples", held, is_sampled);
    json_put_int(json, "live_bytes_per_s", slope.value);
    put_interval(json, "live_interval_bytes_per_s", slope);
    json_put_int(json, "peak_bytes", peak.value);
    put_interval(json, "peak_interval_bytes", peak);
    put_samples(json, "peak_samples", peak, is_sampled);
    json_put_uint(json, "allocated_bytes", profile->totals.allocated_bytes);
    json_put_uint(json, "allocations", profile->totals.allocations);
    put_rate(json, live_rate_total(view->live));
    if (view->rss_bytes)
        json_put_uint(json, "rss_bytes", view->rss_bytes);
    else
        json_put_null(json, "rss_bytes");
    json_put_uint(json, "stack_count", view->live->whole.stacks.count);
}

static void put_stack_estimates(struct json *json, const struct top_view *view, uint32_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    bool is_sampled = view->live->profile.sampling.is_on != 0;
    struct measured held = measure_stack(MEASURE_EXIT, stack);
    struct measured allocated = measure_stack(MEASURE_ALLOCATED, stack);
    put_interval(json, "live_interval_bytes", held);
    put_interval(json, "live_interval_blocks", measure_stack(MEASURE_EXIT_BLOCKS, stack));
    put_samples(json, "live_samples", held, is_sampled);
    put_interval(json, "growth_interval_bytes", live_measured(view->live, LIVE_GROWTH, index));
    put_interval(json, "allocated_interval_bytes", allocated);
    put_interval(json, "allocated_interval_calls", measure_stack(MEASURE_CALLS, stack));
    put_samples(json, "allocated_samples", allocated, is_sampled);
    put_interval(json, "allocated_interval_bytes_per_s",
                 live_measured(view->live, LIVE_RATE, index));
}

static void put_labels(struct json *json, const struct live_set *set) {
    enum { KEY_BYTES = 256 };
    json_open_object(json, "labels");
    for (const char *label = NULL; (label = live_set_next(set, label));) {
        char key[KEY_BYTES];
        size_t length = strcspn(label, "=");
        snprintf(key, sizeof key, "%.*s", (int)length, label);
        json_put_string(json, key, label + length + (label[length] != 0));
    }
    json_close(json);
}

static void put_values(struct json *json, const struct top_view *view, uint32_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    json_put_int(json, "live_bytes", stack->exit_bytes);
    json_put_int(json, "live_blocks", stack->exit_blocks);
    put_stack_estimates(json, view, index);
    json_put_int(json, "growth_bytes", live_value(view->live, LIVE_GROWTH, index));
    json_put_uint(json, "allocated_bytes", stack->allocated_bytes);
    json_put_uint(json, "allocations", stack->allocations);
    put_rate(json, live_rate_of(view->live, index));
    json_put_uint(json, "temporary", stack->temporary);
}

static void put_set(struct json *json, const struct top_view *view, uint32_t index) {
    const struct live_part *part = &view->live->part;
    json_open_object(json, NULL);
    if (part->kind == LIVE_BY_HEAPS)
        json_put_string(json, "name", part->sets.items[index].labels);
    else
        put_labels(json, &part->sets.items[index]);
    put_values(json, view, index);
    json_close(json);
}

static bool put_stack(struct json *json, const struct top_view *view, uint32_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    struct frame_list frames = {.are_all_shown = true};
    const struct frame *frame;
    char id[ID_BYTES];
    size_t at = 0;
    bool is_ok = frame_list_fill(&frames, &view->live->profile, view->names, stack->node, 0);
    snprintf(id, sizeof id, "%016" PRIx64, stack->id);
    json_open_object(json, NULL);
    json_put_string(json, "id", id);
    put_values(json, view, index);
    json_put_string(json, "incomplete", stack->cut ? cut_key(stack->cut) : NULL);
    json_open_array(json, "frames");
    while (is_ok && (frame = frame_list_next(&frames, &at)))
        if (!frame_is_bucket(frame)) json_values_put_frame(json, frame);
    json_close(json);
    json_close(json);
    frame_list_free(&frames);
    return is_ok;
}

bool top_json_print(FILE *out, const struct top_view *view, const uint32_t *rows, size_t count,
                    struct error *error) {
    struct json json;
    bool is_ok = true;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", TOP_SCHEMA);
    put_process(&json, view);
    const struct live_part *part = &view->live->part;
    if (part->kind == LIVE_OF_LABELS) put_labels(&json, &part->of);
    if (part->kind == LIVE_OF_HEAP) json_put_string(&json, "heap", part->of.labels);
    json_open_array(&json, part->kind == LIVE_BY_LABELS  ? "contexts"
                           : part->kind == LIVE_BY_HEAPS ? "heaps"
                                                         : "stacks");
    for (size_t i = 0; i < count && is_ok; i++)
        if (live_part_is_of_sets(part))
            put_set(&json, view, rows[i]);
        else
            is_ok = put_stack(&json, view, rows[i]);
    json_close(&json);
    json_close(&json);
    return is_ok || error_set(error, "no memory for the list of stacks");
}

void top_json_print_processes(FILE *out, const struct top_process *processes, size_t count) {
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", TOP_SCHEMA);
    json_open_array(&json, "processes");
    for (size_t i = 0; i < count; i++) {
        const struct top_process *process = &processes[i];
        json_open_object(&json, NULL);
        json_put_int(&json, "pid", process->pid);
        json_put_string(&json, "program", process->name);
        json_put_bool(&json, "is_off", process->is_off);
        json_put_uint(&json, "at_ns", process->age_ns);
        json_put_int(&json, "live_bytes", process->live.value);
        put_interval(&json, "live_interval_bytes", process->live);
        put_samples(&json, "live_samples", process->live, process->is_sampled);
        json_put_int(&json, "peak_bytes", process->peak.value);
        put_interval(&json, "peak_interval_bytes", process->peak);
        put_samples(&json, "peak_samples", process->peak, process->is_sampled);
        if (process->run)
            json_put_int(&json, "run", process->run);
        else
            json_put_null(&json, "run");
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}
