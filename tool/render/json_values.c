// SPDX-License-Identifier: Apache-2.0
#include "tool/render/json_values.h"

#include "tool/model/stack_fields.h"

void json_values_put_inherited(struct json *json, const struct inherited *inherited) {
    json_open_object(json, "inherited");
    json_put_uint(json, "blocks", inherited->blocks);
    json_put_uint(json, "bytes", inherited->bytes);
    json_put_int(json, "peak_blocks", inherited->peak_blocks);
    json_put_int(json, "peak_bytes", inherited->peak_bytes);
    json_put_int(json, "at_exit_blocks", inherited->exit_blocks);
    json_put_int(json, "at_exit_bytes", inherited->exit_bytes);
    json_close(json);
}

void json_values_put_estimate(struct json *json, const char *key, const struct estimate *estimate) {
    json_open_object(json, key);
    json_put_int(json, "interval_bytes", estimate_bytes_interval(estimate));
    json_put_int(json, "interval_blocks", estimate_blocks_interval(estimate));
    if (estimate_bytes_most(estimate)) {
        json_put_int(json, "most_bytes", estimate_bytes_most(estimate));
        json_put_int(json, "most_blocks", estimate_blocks_most(estimate));
    }
    if (estimate->bytes_least > 0) {
        json_put_int(json, "least_bytes", (int64_t)estimate->bytes_least);
        json_put_int(json, "least_blocks", (int64_t)estimate->blocks_least);
    }
    json_put_int(json, "samples", estimate_samples(estimate));
    json_put_int(json, "block_samples", estimate_block_samples(estimate));
    json_put_int(json, "certain_samples", estimate_certain(estimate));
    json_close(json);
}

void json_values_put_estimates(struct json *json, const struct estimate *estimates, bool has_at) {
    json_values_put_estimate(json, "peak_estimate", &estimates[ESTIMATED_PEAK]);
    json_values_put_estimate(json, "at_exit_estimate", &estimates[ESTIMATED_EXIT]);
    json_values_put_estimate(json, "allocated_estimate", &estimates[ESTIMATED_ALLOCATED]);
    if (has_at) json_values_put_estimate(json, "at_estimate", &estimates[ESTIMATED_AT]);
}

void json_values_put_code(struct json *json, const struct frame *frame) {
    json_put_string(json, "function", frame->function);
    json_put_string(json, "file", frame->file);
    if (frame->line)
        json_put_uint(json, "line", frame->line);
    else
        json_put_null(json, "line");
    json_put_bool(json, "inlined", frame->is_inlined);
}

void json_values_put_values(struct json *json, const struct stack *stack,
                            const struct profile *profile) {
    for (const struct stack_field *field = stack_fields; field->key; field++) {
        int64_t value = stack_field_value(field, stack);
        if (!stack_field_is_known(field, profile))
            json_put_null(json, field->key);
        else if (field->is_signed)
            json_put_int(json, field->key, value);
        else
            json_put_uint(json, field->key, (uint64_t)value);
    }
    if (stack_more(stack)->inherited.blocks)
        json_values_put_inherited(json, &stack_more(stack)->inherited);
}

void json_values_put_part(struct json *json, const struct stack *values) {
    json_put_uint(json, "allocations", values->allocations);
    json_put_uint(json, "allocated_bytes", values->allocated_bytes);
    json_put_uint(json, "freed_bytes", values->freed_bytes);
    json_put_int(json, "peak_bytes", values->peak_bytes);
    json_put_int(json, "at_exit_bytes", values->exit_bytes);
    json_put_int(json, "at_exit_blocks", values->exit_blocks);
}

void json_values_put_frame(struct json *json, const struct frame *frame) {
    json_open_object(json, NULL);
    json_values_put_code(json, frame);
    json_put_string(json, "module", frame->module);
    json_put_uint(json, "offset", frame->offset);
    json_close(json);
}

bool json_values_put_frames(struct json *json, const char *key, const struct profile *profile,
                            const struct frame_names *names, uint32_t node) {
    struct frame_list frames = {.are_all_shown = true};
    bool is_ok = frame_list_fill(&frames, profile, names, node, 0);
    const struct frame *frame;
    size_t index = 0;
    json_open_array(json, key);
    while (is_ok && (frame = frame_list_next(&frames, &index)))
        if (!frame_is_bucket(frame)) json_values_put_frame(json, frame);
    json_close(json);
    frame_list_free(&frames);
    return is_ok;
}
