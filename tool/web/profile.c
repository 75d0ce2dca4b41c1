// SPDX-License-Identifier: Apache-2.0
// A profile as chunks: "profile" with the facts, then columns of numbers. Stacks refer to nodes of
// the tree, nodes to places, places to frames, frames to texts; the page puts them together.
// Differences instead of numbers where neighbours are alike: they are shorter.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/export/frame_table.h"
#include "tool/model/contexts.h"
#include "tool/model/measure.h"
#include "tool/model/narrow.h"
#include "tool/model/profile.h"
#include "tool/model/shape.h"
#include "tool/model/stack_fields.h"
#include "tool/render/report_json.h"
#include "tool/web/findings.h"
#include "tool/web/heaps.h"
#include "tool/web/history.h"
#include "tool/web/sink.h"
#include "tool/web/sources.h"
#include "tool/web/web.h"

// --- shapes

// What the blocks of stacks were like, the findings, and which thread allocated what, in which
// context. Sizes, ages and reallocations are those of the stacks that hold or allocate most. Sums
// by thread and context are one row a cell; a cell's slot is that of the thread that allocated.

enum { STACKS_PER_MEASURE = 500, SIZES_MAX = 8, CELLS_MAX = 1500000 };
enum { OWNERS_WITH_AGES = 20000 };  // who keeps blocks is looked at by age, small ones as well

struct shapes {
    struct sink *sink;
    const struct profile *profile;
    const struct frame_names *names;
    struct shape shape;
    struct contexts contexts;
    bool *is_taken;  // by index of the stack
    struct json json;
};

static bool take_largest(struct shapes *shapes, enum measure by) {
    size_t count = 0, most = STACKS_PER_MEASURE;
    if (recording_is_of_owners(shapes->profile->recording)) most = OWNERS_WITH_AGES;
    uint32_t *order = measure_rank_most(by, shapes->profile, most, &count);
    for (size_t i = 0; order && i < count; i++) shapes->is_taken[order[i]] = true;
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
    size_t count = CAIRN_AGE_BUCKETS;
    while (count && !ages.ms[count - 1]) count--;
    json_open_array(&shapes->json, "ages_ms");
    for (size_t i = 0; i < count; i++) json_put_uint(&shapes->json, NULL, ages.ms[i]);
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

static void put_shaped_stacks(struct shapes *shapes) {
    json_open_array(&shapes->json, NULL);
    for (size_t i = 0; i < shapes->profile->stack_count; i++)
        if (shapes->is_taken[i]) put_stack(shapes, i);
    json_close(&shapes->json);
}

// A chunk of JSON.
static bool put_shaped(struct shapes *shapes) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&shapes->json, out);
    put_shaped_stacks(shapes);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(shapes->sink, "shapes", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

static void put_cells(struct shapes *shapes, const uint32_t *index) {
    const struct profile *profile = shapes->profile;
    struct column stack = {0}, slots = {0}, peak = {0}, exit = {0}, allocated = {0}, calls = {0},
                  context = {0};
    const struct contexts *contexts = &shapes->contexts;
    for (size_t cell = 0; cell < profile->cell_count && cell < CELLS_MAX; cell++) {
        struct cell_values values;
        uint16_t slot;
        uint32_t number = profile->stack_of_cell[cell];
        if (!number || !index[number - 1] || !profile_cell(profile, cell, &values) ||
            !narrow_cell_slot(profile, cell, &slot))
            continue;
        column_put_number(&stack, index[number - 1] - 1);
        column_put_number(&slots, slot);
        column_put_number(&context, contexts_of_cell(contexts, profile, cell));
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
    sink_put_column(shapes->sink, "cell.context", CHUNK_NUMBERS, &context);
}

// The sets of labels by the numbers of "cell.context", with their sums over all cells.
static bool put_sets(struct shapes *shapes) {
    const struct contexts *contexts = &shapes->contexts;
    struct stack *values = contexts_sum(contexts, shapes->profile);
    char safe[FRAME_TITLE_BYTES];
    for (size_t i = 0; values && i < contexts->count; i++) {
        const struct context *context = &contexts->list[i];
        json_open_object(&shapes->json, NULL);
        json_open_array(&shapes->json, "labels");
        for (size_t at = 0; at < context->label_count; at++) {
            text_escape(safe, sizeof safe, context->labels[at]);
            json_put_string(&shapes->json, NULL, safe);
        }
        json_close(&shapes->json);
        json_put_uint(&shapes->json, "entered", context->entered);
        json_put_int(&shapes->json, "peak", values[i].peak_bytes);
        json_put_int(&shapes->json, "exit", values[i].exit_bytes);
        json_put_uint(&shapes->json, "allocated", values[i].allocated_bytes);
        json_put_uint(&shapes->json, "calls", values[i].allocations);
        json_close(&shapes->json);
    }
    free(values);
    return values != NULL;
}

// A chunk of JSON where the program entered any.
static bool put_contexts(struct shapes *shapes) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&shapes->json, out);
    json_open_array(&shapes->json, NULL);
    bool is_ok = put_sets(shapes);
    json_close(&shapes->json);
    is_ok = !fclose(out) && is_ok;
    if (is_ok) sink_put_chunk(shapes->sink, "contexts", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

// Who allocated what: threads, if there are several, and contexts, if there are any.
static bool put_owners_of_cells(struct shapes *shapes) {
    if (!contexts_read(&shapes->contexts, shapes->profile->recording, NULL)) return false;
    bool has_contexts = shapes->contexts.count > 1, is_ok = true;
    if (has_contexts) is_ok = put_contexts(shapes);
    uint32_t *index = NULL;
    if (is_ok && (has_contexts || shapes->profile->thread_count > 1)) {
        index = profile_stack_indexes(shapes->profile);
        is_ok = index != NULL;
    }
    if (index) put_cells(shapes, index);
    free(index);
    contexts_free(&shapes->contexts);
    return is_ok;
}

// Chunks "shapes", "findings" and "contexts" (JSON), and if several threads allocated, or in any
// context, columns "cell.stack", "cell.slot", "cell.context", "cell.peak", "cell.exit",
// "cell.allocated", "cell.calls": sums by stack, slot and context. False without memory.
static bool shapes_put(struct sink *sink, const struct profile *profile,
                       const struct frame_names *names, struct error *error) {
    struct shapes shapes = {.sink = sink, .profile = profile, .names = names};
    static const enum measure measures[] = {MEASURE_PEAK, MEASURE_EXIT, MEASURE_ALLOCATED,
                                            MEASURE_CALLS};
    if (!shape_build(&shapes.shape, profile, error)) return false;
    shapes.is_taken = calloc(profile->stack_count + 1, sizeof *shapes.is_taken);
    bool is_ok = shapes.is_taken != NULL;
    for (size_t i = 0; is_ok && i < sizeof measures / sizeof *measures; i++)
        is_ok = take_largest(&shapes, measures[i]);
    is_ok = is_ok && put_shaped(&shapes) && findings_put(sink, profile, names, error) &&
            put_owners_of_cells(&shapes) && heaps_put(sink, profile, error);
    free(shapes.is_taken);
    shape_free(&shapes.shape);
    return is_ok || error_set(error, "no memory for the shapes of this recording");
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

// As tool/render/frames.h has it; an interpreter's are hidden in stacks with code in Python.
enum {
    FLAG_INLINED = 1,
    FLAG_HIDDEN = 2,
    FLAG_ALLOCATOR = 4,
    FLAG_MARK = 8,
    FLAG_INTERPRETER = 16,
    FLAG_PYTHON = 32,
};

// Distinct texts, numbered from 1.
struct texts {
    ARRAY(const char *) list;
    struct index_table index;
};

struct writer {
    struct web *web;
    const struct web_profile *about;
    struct frame_table frames;
    struct texts texts;
    struct error *error;
};

static uint64_t text_hash(const char *text) {
    uint64_t hash = index_table_seed();
    for (; *text; text++) hash = hash_mix(hash, (unsigned char)*text);
    return hash;
}

// 0 for NULL, and without memory.
static uint32_t number_of(struct writer *writer, const char *text) {
    if (!text) return 0;
    struct texts *texts = &writer->texts;
    uint64_t hash = text_hash(text);
    struct index_probe probe = index_probe_start(&texts->index, hash);
    for (uint32_t index; index_probe_next(&texts->index, &probe, &index);)
        if (!strcmp(texts->list.items[index], text)) return index + 1;
    const char **slot = array_push(&texts->list);
    if (slot) *slot = text;
    if (slot && index_table_insert(&texts->index, hash, (uint32_t)texts->list.count - 1))
        return (uint32_t)texts->list.count;
    writer->web->sink.is_bad = true;
    return 0;
}

// Columns of numbers that grow together, a row at a time.
struct series {
    const char *name;
    struct column column;
};

static void put_row(struct series *series, const int64_t *row, size_t count) {
    for (size_t i = 0; i < count; i++) column_put_number(&series[i].column, row[i]);
}

static void put_series(struct writer *writer, struct series *series, size_t count) {
    for (size_t i = 0; i < count; i++)
        sink_put_column(&writer->web->sink, series[i].name, CHUNK_NUMBERS, &series[i].column);
}

static void put_texts(struct writer *writer) {
    struct column column = {0};
    char safe[FRAME_TITLE_BYTES];
    for (size_t i = 0; i < writer->texts.list.count; i++) {
        text_escape(safe, sizeof safe, writer->texts.list.items[i]);
        column_put_text(&column, safe);
    }
    sink_put_column(&writer->web->sink, "texts", CHUNK_TEXTS, &column);
}

static int64_t flags_of(const struct writer *writer, const struct frame *frame) {
    const struct frame *marks = writer->frames.marks;
    bool is_mark = frame >= marks && frame <= &marks[CAIRN_CUT_LIMIT];
    return (frame->is_inlined ? FLAG_INLINED : 0) | (frame->is_hidden ? FLAG_HIDDEN : 0) |
           (frame->is_allocator ? FLAG_ALLOCATOR : 0) | (is_mark ? FLAG_MARK : 0) |
           (frame->is_interpreter ? FLAG_INTERPRETER : 0) | (frame->is_python ? FLAG_PYTHON : 0);
}

static void put_frames(struct writer *writer) {
    struct series series[] = {{.name = "frame.function"}, {.name = "frame.file"},
                              {.name = "frame.line"},     {.name = "frame.module"},
                              {.name = "frame.flags"},    {.name = "frame.offset"}};
    for (size_t i = 0; i < writer->frames.frames.count; i++) {
        const struct frame *frame = writer->frames.frames.items[i];
        uint32_t function = number_of(writer, frame->function);
        uint32_t file = number_of(writer, frame->file);
        uint32_t module = number_of(writer, frame->module);
        int64_t offset = frame->function ? 0 : (int64_t)frame->offset;
        const int64_t row[] = {function, file, frame->line, module, flags_of(writer, frame),
                               offset};
        put_row(series, row, COUNT(row));
    }
    put_series(writer, series, COUNT(series));
}

static void put_places(struct writer *writer) {
    struct series series[] = {{.name = "place.count"}, {.name = "place.frames"}};
    const struct frame_table *table = &writer->frames;
    size_t places = writer->about->export->profile->places.list.count;
    for (size_t place = 0; place < places; place++) {
        struct frame_slice slice = table->slices[place];
        column_put_number(&series[0].column, slice.count);
        for (uint32_t i = 0; i < slice.count; i++)
            column_put_number(&series[1].column, table->numbers.items[slice.first + i]);
    }
    put_series(writer, series, COUNT(series));
}

static void put_nodes(struct writer *writer) {
    struct series series[] = {{.name = "node.back"}, {.name = "node.place"}};
    const struct tree *tree = &writer->about->export->profile->tree;
    for (uint32_t node = 1; node < tree->nodes.count; node++) {
        const struct tree_node *shown = &tree->nodes.items[node];
        const int64_t row[] = {(int64_t)node - shown->parent, shown->place};
        put_row(series, row, COUNT(row));
    }
    put_series(writer, series, COUNT(series));
}

// The node of each stack, and a column for each of its values, named like those of the JSON report.
static void put_stacks(struct writer *writer) {
    enum { NAME_BYTES = 64 };
    const struct profile *profile = writer->about->export->profile;
    struct series node = {.name = "stack.node"};
    uint32_t last = 0;
    for (size_t i = 0; i < profile->stack_count; i++) {
        column_put_number(&node.column, (int64_t)profile->stacks[i].node - last);
        last = profile->stacks[i].node;
    }
    put_series(writer, &node, 1);
    // stacks are more than caches hold: they are walked over once for all columns
    struct column columns[STACK_FIELD_COUNT] = {0};
    for (size_t i = 0; i < profile->stack_count; i++)
        for (size_t field = 0; field < STACK_FIELD_COUNT; field++)
            column_put_number(&columns[field],
                              stack_field_value(&stack_fields[field], &profile->stacks[i]));
    for (size_t field = 0; field < STACK_FIELD_COUNT; field++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "stack.%s", stack_fields[field].key);
        sink_put_column(&writer->web->sink, name, CHUNK_NUMBERS, &columns[field]);
    }
}

// What was live at the snapshot that the page is asked for.
static void put_then(struct writer *writer) {
    struct series series[] = {{.name = "stack.at"}, {.name = "stack.at_blocks"}};
    const struct profile *profile = writer->about->export->profile;
    if (!writer->about->at_text) return;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const int64_t row[] = {profile->stacks[i].at_bytes, profile->stacks[i].at_blocks};
        put_row(series, row, COUNT(row));
    }
    put_series(writer, series, COUNT(series));
}

// Half the widths of the 95 % intervals, by the page's names of measures, and the samples behind
// them, where stacks are estimates.
static void put_intervals(struct writer *writer) {
    enum { COLUMNS_EACH = 4 };
    struct series series[ESTIMATED_COUNT * COLUMNS_EACH] = {
        {.name = "stack.peak_interval"},      {.name = "stack.peak-blocks_interval"},
        {.name = "stack.peak_samples"},       {.name = "stack.peak-blocks_samples"},
        {.name = "stack.exit_interval"},      {.name = "stack.exit-blocks_interval"},
        {.name = "stack.exit_samples"},       {.name = "stack.exit-blocks_samples"},
        {.name = "stack.allocated_interval"}, {.name = "stack.calls_interval"},
        {.name = "stack.allocated_samples"},  {.name = "stack.calls_samples"},
        {.name = "stack.at_interval"},        {.name = "stack.at-blocks_interval"},
        {.name = "stack.at_samples"},         {.name = "stack.at-blocks_samples"}};
    const struct profile *profile = writer->about->export->profile;
    size_t count = writer->about->at_text ? ESTIMATED_COUNT : ESTIMATED_AT;
    if (!profile->sampling.is_on) return;
    for (size_t i = 0; i < profile->stack_count; i++)
        for (size_t kind = 0; kind < count; kind++) {
            const struct stack *stack = &profile->stacks[i];
            const int64_t held[] = {stack->peak_bytes, stack->exit_bytes,
                                    (int64_t)stack->allocated_bytes, stack->at_bytes};
            const struct estimate none = {0};  // the page knows itself what may be missed of 0
            const struct estimate *estimate =
                held[kind] > 0 ? &stack_more(stack)->estimates[kind] : &none;
            const int64_t row[] = {estimate_bytes_interval(estimate),
                                   estimate_blocks_interval(estimate), estimate_samples(estimate),
                                   estimate_block_samples(estimate)};
            put_row(&series[kind * COLUMNS_EACH], row, COUNT(row));
        }
    put_series(writer, series, count * COLUMNS_EACH);
}

static void put_points(struct writer *writer) {
    struct series series[] = {{.name = "point.index"},     {.name = "point.low"},
                              {.name = "point.high"},      {.name = "point.last"},
                              {.name = "point.allocated"}, {.name = "point.calls"}};
    const struct recording *recording = writer->about->export->profile->recording;
    struct cairn_point point;
    size_t before = 0;
    for (size_t i = 0; recording_point(recording, i, &point); i++) {
        if (!point.is_used) continue;
        const int64_t row[] = {(int64_t)(i - before),
                               point.min_bytes,
                               point.max_bytes,
                               point.last_bytes,
                               (int64_t)point.allocated_bytes,
                               (int64_t)point.allocations};
        before = i;
        put_row(series, row, COUNT(row));
    }
    put_series(writer, series, COUNT(series));
}

static bool put_facts(struct writer *writer, struct json *json) {
    static const char *const roles[] = {"one", "process", "before", "after"};  // by enum web_role
    const struct export *export = writer->about->export;
    const struct profile *profile = export->profile;
    json_open_object(json, NULL);
    json_put_string(json, "tool", export->tool_version);
    json_put_string(json, "role", roles[writer->about->role]);
    json_put_string(json, "program", export->program);
    json_put_string(json, "path", writer->about->path);
    json_put_string(json, "ending", writer->about->ending);
    json_put_string(json, "empty", writer->about->empty);
    json_put_string(json, "at_text", writer->about->at_text);
    json_put_int(json, "at_bytes", profile->at_bytes);
    json_put_string(json, "trust_line", export->trust);
    json_put_string(json, "executable", profile->recording->header.executable);
    json_put_uint(json, "point_ns", profile->recording->header.totals.point_ns);
    json_put_bool(json, "has_ended", profile_has_ended(profile));
    json_put_bool(json, "has_calls", profile_has_calls(profile));
    json_put_bool(json, "has_blocks", profile_has_blocks(profile));
    json_put_bool(json, "of_owners", recording_is_of_owners(profile->recording));
    report_json_put_facts(json, profile, export->names);
    report_json_put_threads(json, profile);
    bool is_ok = findings_put_first(json, profile, export->names);
    json_close(json);
    return is_ok;
}

static bool put_heading(struct writer *writer) {
    char *text = NULL;
    size_t size = 0;
    struct json json;
    FILE *out = open_memstream(&text, &size);
    if (!out) return error_set(writer->error, "no memory for the page");
    json_start(&json, out);
    bool is_ok = put_facts(writer, &json);
    is_ok = (!fclose(out) && is_ok) || error_set(writer->error, "no memory for the page");
    if (is_ok) sink_put_chunk(&writer->web->sink, "profile", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

bool web_put_profile(struct web *web, const struct web_profile *about, struct error *error) {
    struct writer writer = {.web = web, .about = about, .error = error};
    if (!profile_has_frees(about->export->profile))
        return error_set(error, "the page is of what was live, and the imported file does not say "
                                "what was freed: cairn report, cairn export");
    if (!frame_table_build(&writer.frames, about->export, FRAMES_MARKED, error)) return false;
    bool is_ok = put_heading(&writer);
    if (is_ok) {
        put_frames(&writer);
        put_places(&writer);
        put_nodes(&writer);
        put_stacks(&writer);
        put_then(&writer);
        put_intervals(&writer);
        put_points(&writer);
        put_texts(&writer);
        is_ok = history_put(&web->sink, about->export->profile, error) &&
                shapes_put(&web->sink, about->export->profile, about->export->names, error) &&
                sources_put(&web->sink, &writer.frames, error);
    }
    array_free(&writer.texts.list);
    index_table_free(&writer.texts.index);
    frame_table_free(&writer.frames);
    return is_ok;
}
