// SPDX-License-Identifier: Apache-2.0
// Everything a recording says, each thing once: schema "cairn.export/1"
// (docs/reference/export-json.md). Where `cairn report --json` spells out the frames of every
// stack, stacks refer to a table of places here.
#include <inttypes.h>

#include "tool/base/json.h"
#include "tool/export/export.h"
#include "tool/render/json_values.h"
#include "tool/render/report_json.h"

#define EXPORT_SCHEMA "cairn.export/1"

static void put_modules(struct json *json, const struct profile *profile) {
    char build_id[MODULE_BUILD_ID_TEXT];
    json_open_array(json, "modules");
    for (size_t i = 0; i < profile->modules.count; i++) {
        const struct module *module = &profile->modules.modules[i];
        module_build_id_text(module, build_id);
        json_open_object(json, NULL);
        json_put_string(json, "path", module->path);
        json_put_string(json, "build_id", *build_id ? build_id : NULL);
        json_put_uint(json, "start", module->start);
        json_put_uint(json, "end", module->end);
        json_put_uint(json, "bias", module->bias);
        json_put_uint(json, "loaded_ns", module->loaded_ns);
        if (module->unloaded_ns)
            json_put_uint(json, "unloaded_ns", module->unloaded_ns);
        else
            json_put_null(json, "unloaded_ns");
        json_close(json);
    }
    json_close(json);
}

static void put_functions(struct json *json, const struct frame *frames, size_t count) {
    json_open_array(json, "functions");
    for (size_t i = 0; i < count; i++) {
        if (!frames[i].function) continue;
        json_open_object(json, NULL);
        json_values_put_code(json, &frames[i]);
        json_put_bool(json, "internal", frames[i].is_hidden);
        json_close(json);
    }
    json_close(json);
}

static void put_places(struct json *json, const struct export *export) {
    const struct places *places = &export->profile->places;
    json_open_array(json, "locations");
    for (uint32_t i = 0; i < places->list.count; i++) {
        const struct place *place = &places->list.items[i];
        size_t count = 0;
        const struct frame *frames =
            place->cut ? NULL : export->names->of_place(export->names->context, i, &count);
        json_open_object(json, NULL);
        if (place->module == MODULE_NONE)
            json_put_null(json, "module");
        else
            json_put_uint(json, "module", place->module);
        json_put_uint(json, "offset", place->address);
        put_functions(json, frames, count);
        json_close(json);
    }
    json_close(json);
}

static void put_stack(struct json *json, const struct profile *profile, const struct stack *stack) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    const struct place *places = profile->places.list.items;
    char id[2 * sizeof stack->id + 1];
    snprintf(id, sizeof id, "%016" PRIx64, stack->id);
    json_open_object(json, NULL);
    json_put_string(json, "id", id);
    json_put_string(json, "incomplete", stack->cut ? cut_key(stack->cut) : NULL);
    json_values_put_values(json, stack, profile);
    if (profile->sampling.is_on)
        json_values_put_estimates(json, stack_more(stack)->estimates, false);
    json_open_array(json, "locations");
    for (uint32_t node = stack->node; node != TREE_ROOT; node = nodes[node].parent)
        if (!places[nodes[node].place].cut) json_put_uint(json, NULL, nodes[node].place);
    json_close(json);
    json_close(json);
}

static void put_stacks(struct json *json, const struct profile *profile) {
    json_open_array(json, "stacks");
    for (size_t i = 0; i < profile->stack_count; i++) put_stack(json, profile, &profile->stacks[i]);
    json_close(json);
}

static void put_timeline(struct json *json, const struct recording *recording) {
    struct cairn_point point;
    uint64_t interval_ns = recording->header.totals.point_ns;
    json_open_array(json, "timeline");
    for (size_t i = 0; recording_point(recording, i, &point); i++) {
        uint64_t start_ns;
        if (!point.is_used || __builtin_mul_overflow(interval_ns, (uint64_t)i, &start_ns)) continue;
        json_open_object(json, NULL);
        json_put_uint(json, "start_ns", start_ns);
        json_put_int(json, "min_bytes", point.min_bytes);
        json_put_int(json, "max_bytes", point.max_bytes);
        json_put_int(json, "last_bytes", point.last_bytes);
        json_put_int(json, "last_blocks", point.last_blocks);
        json_put_uint(json, "allocated_bytes", point.allocated_bytes);
        json_put_uint(json, "allocations", point.allocations);
        json_close(json);
    }
    json_close(json);
    json_put_uint(json, "timeline_interval_ns", interval_ns);
}

bool export_json(FILE *out, const struct export *export, struct error *error) {
    (void)error;
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", EXPORT_SCHEMA);
    json_put_uint(&json, "processes", export->process_count);
    report_json_put_facts(&json, export->profile, export->names);
    put_modules(&json, export->profile);
    put_places(&json, export);
    put_stacks(&json, export->profile);
    report_json_put_threads(&json, export->profile);
    put_timeline(&json, export->profile->recording);
    json_close(&json);
    return true;
}
