// SPDX-License-Identifier: Apache-2.0
#include "tool/render/top_json.h"

#include <inttypes.h>

#include "tool/base/json.h"
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
static void put_interval(struct json *json, struct measured measured) {
    if (measured_interval(measured))
        json_put_int(json, "live_interval_bytes", measured_interval(measured));
    else
        json_put_null(json, "live_interval_bytes");
}

static void put_process(struct json *json, const struct top_view *view) {
    const struct profile *profile = &view->live->profile;
    const struct cairn_header *header = &profile->recording->header;
    char name[NAME_BYTES];
    program_name(profile, name, sizeof name);
    json_put_string(json, "program", name);
    json_put_int(json, "pid", view->pid);
    json_put_bool(json, "is_over", view->over != NULL);
    json_put_bool(json, "is_off", header->control.is_off != 0);
    json_put_bool(json, "exact", profile_is_exact(profile));
    json_put_bool(json, "sampled", profile->sampling.is_on != 0);
    json_put_uint(json, "at_ns", live_now_ns(view->live));
    json_put_int(json, "live_bytes", profile->exit_bytes);
    json_put_int(json, "live_blocks", profile->exit_blocks);
    put_interval(json, measure_total(MEASURE_EXIT, profile));
    json_put_int(json, "live_bytes_per_s", whole(live_slope(view->live)));
    json_put_int(json, "peak_bytes", profile->peak.bytes);
    json_put_uint(json, "allocated_bytes", profile->totals.allocated_bytes);
    json_put_uint(json, "allocations", profile->totals.allocations);
    put_rate(json, live_rate_total(view->live));
    if (view->rss_bytes)
        json_put_uint(json, "rss_bytes", view->rss_bytes);
    else
        json_put_null(json, "rss_bytes");
    json_put_uint(json, "stack_count", view->live->stacks.count);
}

static bool put_stack(struct json *json, const struct top_view *view, uint32_t index) {
    const struct stack *stack = &view->live->stacks.items[index];
    struct frame_list frames = {.are_all_shown = true};
    const struct frame *frame;
    char id[ID_BYTES];
    size_t at = 0;
    bool is_ok = frame_list_fill(&frames, &view->live->profile, view->names, stack->node, 0);
    snprintf(id, sizeof id, "%016" PRIx64, stack->id);
    json_open_object(json, NULL);
    json_put_string(json, "id", id);
    json_put_int(json, "live_bytes", stack->exit_bytes);
    json_put_int(json, "live_blocks", stack->exit_blocks);
    put_interval(json, measure_stack(MEASURE_EXIT, stack));
    json_put_int(json, "growth_bytes", live_value(view->live, LIVE_GROWTH, index));
    json_put_uint(json, "allocated_bytes", stack->allocated_bytes);
    json_put_uint(json, "allocations", stack->allocations);
    put_rate(json, live_rate_of(view->live, index));
    json_put_uint(json, "temporary", stack->temporary);
    json_put_string(json, "incomplete", stack->cut ? cut_key(stack->cut) : NULL);
    json_open_array(json, "frames");
    while (is_ok && (frame = frame_list_next(&frames, &at))) report_json_put_frame(json, frame);
    json_close(json);
    json_close(json);
    frame_list_free(&frames);
    return is_ok;
}

bool top_json_print(FILE *out, const struct top_view *view, const uint32_t *stacks, size_t count,
                    struct error *error) {
    struct json json;
    bool is_ok = true;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", TOP_SCHEMA);
    put_process(&json, view);
    json_open_array(&json, "stacks");
    for (size_t i = 0; i < count && is_ok; i++) is_ok = put_stack(&json, view, stacks[i]);
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
        json_put_int(&json, "live_bytes", process->live_bytes);
        json_put_uint(&json, "peak_bytes", process->peak_bytes);
        if (process->run)
            json_put_int(&json, "run", process->run);
        else
            json_put_null(&json, "run");
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}
