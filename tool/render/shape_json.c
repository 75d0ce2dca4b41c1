// SPDX-License-Identifier: Apache-2.0
#include "tool/render/shape_json.h"

#include <stdlib.h>

#include "tool/render/report_json.h"

// Trailing buckets without blocks are left out.
static void put_buckets(struct json *json, const char *name, const uint64_t *buckets,
                        size_t count) {
    while (count && !buckets[count - 1]) count--;
    json_open_array(json, name);
    for (size_t i = 0; i < count; i++) json_put_uint(json, NULL, buckets[i]);
    json_close(json);
}

static void put_sizes(struct json *json, const struct shape_sizes *sizes) {
    json_open_object(json, "sizes");
    json_open_array(json, "exact");
    for (size_t i = 0; i < sizes->count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "size", sizes->list[i].size);
        json_put_uint(json, "count", sizes->list[i].count);
        json_put_bool(json, "at_least", sizes->list[i].is_at_least);
        json_close(json);
    }
    json_close(json);
    put_buckets(json, "log2", sizes->buckets, SHAPE_SIZE_BUCKETS);
    json_put_uint(json, "unknown", sizes->unknown);
    json_close(json);
}

static void put_reallocs(struct json *json, const struct shape_reallocs *reallocs) {
    json_open_object(json, "reallocs");
    json_put_uint(json, "calls", reallocs->calls);
    json_put_uint(json, "in_place", reallocs->in_place);
    json_put_uint(json, "grown", reallocs->grown);
    json_put_uint(json, "copied_bytes", reallocs->copied_bytes);
    json_close(json);
}

static void put_aligned(struct json *json, const struct shape_aligned *aligned) {
    json_open_object(json, "aligned");
    json_put_uint(json, "calls", aligned->all_calls);
    json_put_uint(json, "usual_alignment", aligned->usual);
    json_put_uint(json, "largest_alignment", aligned->most);
    if (aligned->is_waste_known) {
        json_put_uint(json, "slack_bytes", aligned->slack_bytes);
        json_put_uint(json, "waste_bytes", aligned->waste_bytes);
    } else {
        json_put_null(json, "slack_bytes");
        json_put_null(json, "waste_bytes");
    }
    json_open_array(json, "alignments");
    for (size_t i = 0; i < CAIRN_ALIGN_BUCKETS; i++) {
        if (!aligned->calls[i]) continue;
        json_open_object(json, NULL);
        json_put_uint(json, "alignment", shape_alignment(i));
        json_put_uint(json, "calls", aligned->calls[i]);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void put_sampled_sizes(struct json *json, const struct shape *shape, uint32_t stack_number) {
    struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES];
    int64_t others;
    size_t count = shape_sampled_sizes(shape, stack_number, sizes, &others);
    if (!count) return;
    json_open_object(json, "sizes_estimate");
    json_open_array(json, "log2");
    for (size_t i = 0; i < count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "least_bytes", sizes[i].least);
        json_put_uint(json, "most_bytes", sizes[i].most);
        json_put_int(json, "calls", sizes[i].calls.value);
        json_put_int(json, "interval_calls", measured_interval(sizes[i].calls));
        json_put_int(json, "samples", sizes[i].calls.samples);
        json_close(json);
    }
    json_close(json);
    json_put_int(json, "unknown", others);
    json_close(json);
}

void shape_json_put(struct json *json, const struct shape *shape, uint32_t stack_number) {
    struct shape_sizes sizes;
    struct shape_reallocs reallocs;
    struct shape_aligned aligned;
    struct shape_ages ages;
    if (stack_number >= shape->profile->built_stack_count) return;
    if (shape->profile->sampling.is_on) {  // only blocks that were all recorded have the others
        put_sampled_sizes(json, shape, stack_number);
        return;
    }
    shape_sizes(shape, stack_number, &sizes);
    if (sizes.count || sizes.unknown) put_sizes(json, &sizes);
    shape_reallocs(shape, stack_number, &reallocs);
    if (reallocs.calls) put_reallocs(json, &reallocs);
    shape_aligned(shape, stack_number, &aligned);
    if (aligned.all_calls) put_aligned(json, &aligned);
    if (!shape_ages(shape, stack_number, &ages)) return;
    json_open_object(json, "ages");
    put_buckets(json, "calls", ages.calls, CAIRN_AGE_BUCKETS);
    put_buckets(json, "ms", ages.ms, CAIRN_AGE_BUCKETS);
    json_close(json);
}

bool shape_json_put_freed_by(struct json *json, const struct profile *profile) {
    size_t count;
    struct shape_freed *pairs = shape_freed_by(profile, &count);
    json_open_array(json, "freed_by");
    for (size_t i = 0; pairs && i < count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "owner_slot", pairs[i].owner);
        json_put_uint(json, "freer_slot", pairs[i].freer);
        json_put_uint(json, "frees", pairs[i].frees);
        json_put_uint(json, "bytes", pairs[i].bytes);
        if (profile->sampling.is_on) report_json_put_estimate(json, "estimate", &pairs[i].estimate);
        json_close(json);
    }
    json_close(json);
    free(pairs);
    return pairs != NULL;
}
