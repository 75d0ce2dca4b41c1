// SPDX-License-Identifier: Apache-2.0
// Sizes, ages and reallocations are told of the stacks that are looked at: those that hold or
// allocate most. Sums by thread are one row a cell; a cell's slot is that of the thread that
// allocated.
#include "tool/web/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/model/measure.h"
#include "tool/model/narrow.h"
#include "tool/model/shape.h"
#include "tool/render/findings.h"

enum { STACKS_PER_MEASURE = 500, SIZES_MAX = 8, CELLS_MAX = 1500000 };

struct shapes {
    struct sink *sink;
    const struct profile *profile;
    struct shape shape;
    bool *is_taken;  // by index of the stack
    struct json json;
};

static bool take_largest(struct shapes *shapes, enum measure by) {
    size_t count = 0;
    uint32_t *order = measure_rank(by, shapes->profile, &count);
    for (size_t i = 0; order && i < count && i < STACKS_PER_MEASURE; i++)
        shapes->is_taken[order[i]] = true;
    free(order);
    return order != NULL;
}

static void put_sizes(struct shapes *shapes, const struct stack *stack) {
    struct shape_sizes sizes;
    shape_sizes(&shapes->shape, stack->number, &sizes);
    json_open_array(&shapes->json, "sizes");
    if (shapes->profile->sampling.is_on) sizes.count = 0;  // samples do not tell them
    for (size_t i = 0; i < sizes.count && i < SIZES_MAX; i++) {
        json_open_array(&shapes->json, NULL);
        json_put_uint(&shapes->json, NULL, sizes.list[i].size);
        json_put_uint(&shapes->json, NULL, sizes.list[i].count);
        json_close(&shapes->json);
    }
    json_close(&shapes->json);
}

static void put_ages(struct shapes *shapes, const struct stack *stack) {
    struct shape_ages ages;
    if (!shape_ages(&shapes->shape, stack->number, &ages)) return;
    json_open_array(&shapes->json, "ages_ms");
    for (size_t i = 0; i < CAIRN_AGE_BUCKETS; i++) json_put_uint(&shapes->json, NULL, ages.ms[i]);
    json_close(&shapes->json);
}

static void put_stack(struct shapes *shapes, size_t index) {
    const struct stack *stack = &shapes->profile->stacks[index];
    struct shape_reallocs reallocs;
    shape_reallocs(&shapes->shape, stack->number, &reallocs);
    json_open_object(&shapes->json, NULL);
    json_put_uint(&shapes->json, "stack", index);
    put_sizes(shapes, stack);
    if (reallocs.calls) {
        json_open_array(&shapes->json, "reallocs");
        json_put_uint(&shapes->json, NULL, reallocs.calls);
        json_put_uint(&shapes->json, NULL, reallocs.in_place);
        json_put_uint(&shapes->json, NULL, reallocs.copied_bytes);
        json_close(&shapes->json);
    }
    put_ages(shapes, stack);
    json_close(&shapes->json);
}

static void put_stacks(struct shapes *shapes) {
    json_open_array(&shapes->json, NULL);
    for (size_t i = 0; i < shapes->profile->stack_count; i++)
        if (shapes->is_taken[i]) put_stack(shapes, i);
    json_close(&shapes->json);
}

// The page has its own words for them.
static void put_finding(struct shapes *shapes, const struct finding *finding) {
    struct json *json = &shapes->json;
    json_open_object(json, NULL);
    json_put_string(json, "kind", finding_name(finding->kind));
    if (finding->stack)
        json_put_uint(json, "stack", (uint64_t)(finding->stack - shapes->profile->stacks));
    json_put_int(json, "bytes_per_s", (int64_t)finding->bytes_per_s);
    json_put_thousandths(json, "fit", (unsigned)(finding->fit * 1000));
    json_put_uint(json, "count", finding->count);
    json_put_uint(json, "of_count", finding->of_count);
    json_put_bool(json, "is_estimate", finding->is_estimate);
    json_put_bool(json, "is_freed", finding->is_freed);
    bool is_flow = finding->kind == FINDING_FREED_BY;
    json_put_uint(json, "bytes", is_flow ? finding->flow.bytes : finding->bytes);
    json_put_uint(json, "of_bytes", is_flow ? finding->flow.of_bytes : finding->of_bytes);
    json_put_uint(json, "live_bytes", finding->live_bytes);
    json_put_uint(json, "at_ns", finding->at_ns);
    json_put_string(json, "from", is_flow ? finding->flow.from : NULL);
    json_put_string(json, "to", is_flow ? finding->flow.to : NULL);
    json_close(json);
}

// A chunk of JSON that `write` makes.
static bool put_json(struct shapes *shapes, const char *name,
                     void (*write)(struct shapes *shapes, const void *context),
                     const void *context) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&shapes->json, out);
    write(shapes, context);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(shapes->sink, name, CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

static void write_stacks(struct shapes *shapes, const void *context) {
    (void)context;
    put_stacks(shapes);
}

static void write_findings(struct shapes *shapes, const void *context) {
    const struct findings *findings = context;
    json_open_array(&shapes->json, NULL);
    for (size_t i = 0; i < findings->count; i++) put_finding(shapes, &findings->list[i]);
    json_close(&shapes->json);
}

// Index of each stack by its number, plus 1; for free().
static uint32_t *indexes_of(const struct profile *profile) {
    uint32_t *index = calloc(profile->built_stack_count + 1, sizeof *index);
    for (size_t i = 0; index && i < profile->stack_count; i++)
        index[profile->stacks[i].number] = (uint32_t)i + 1;
    return index;
}

static void put_cells(struct shapes *shapes, const uint32_t *index) {
    const struct profile *profile = shapes->profile;
    struct column stack = {0}, slots = {0}, peak = {0}, exit = {0}, allocated = {0}, calls = {0};
    for (size_t cell = 0; cell < profile->cell_count && cell < CELLS_MAX; cell++) {
        struct cell_values values;
        uint16_t slot;
        uint32_t number = profile->stack_of_cell[cell];
        if (!number || !index[number - 1] || !profile_cell(profile, cell, &values) ||
            !narrow_cell_slot(profile, cell, &slot))
            continue;
        column_put_number(&stack, index[number - 1] - 1);
        column_put_number(&slots, slot);
        column_put_number(&peak, values.peak_bytes);
        column_put_number(&exit, values.exit_bytes);
        column_put_number(&allocated, (int64_t)values.allocated_bytes);
        column_put_number(&calls, (int64_t)values.calls);
    }
    sink_put_column(shapes->sink, "cell.stack", CHUNK_NUMBERS, &stack);
    sink_put_column(shapes->sink, "cell.slot", CHUNK_NUMBERS, &slots);
    sink_put_column(shapes->sink, "cell.peak", CHUNK_NUMBERS, &peak);
    sink_put_column(shapes->sink, "cell.exit", CHUNK_NUMBERS, &exit);
    sink_put_column(shapes->sink, "cell.allocated", CHUNK_NUMBERS, &allocated);
    sink_put_column(shapes->sink, "cell.calls", CHUNK_NUMBERS, &calls);
}

static bool put_threads(struct shapes *shapes) {
    if (shapes->profile->thread_count < 2) return true;
    uint32_t *index = indexes_of(shapes->profile);
    if (index) put_cells(shapes, index);
    free(index);
    return index != NULL;
}

bool shapes_put(struct sink *sink, const struct profile *profile, struct error *error) {
    struct shapes shapes = {.sink = sink, .profile = profile};
    struct findings findings = {0};
    static const enum measure measures[] = {MEASURE_PEAK, MEASURE_EXIT, MEASURE_ALLOCATED,
                                            MEASURE_CALLS};
    if (!shape_build(&shapes.shape, profile, error)) return false;
    shapes.is_taken = calloc(profile->stack_count + 1, sizeof *shapes.is_taken);
    bool is_ok = shapes.is_taken != NULL;
    for (size_t i = 0; is_ok && i < sizeof measures / sizeof *measures; i++)
        is_ok = take_largest(&shapes, measures[i]);
    is_ok = is_ok && put_json(&shapes, "shapes", write_stacks, NULL) &&
            findings_find(&findings, profile, error) &&
            put_json(&shapes, "findings", write_findings, &findings) && put_threads(&shapes);
    free(shapes.is_taken);
    shape_free(&shapes.shape);
    return is_ok || error_set(error, "no memory for the shapes of this recording");
}
