// SPDX-License-Identifier: Apache-2.0
// A profile as chunks: "profile" with the facts, then columns of numbers. Stacks refer to nodes of
// the tree, nodes to places, places to frames, frames to texts; the page puts them together.
// Differences instead of numbers where neighbours are alike: they are shorter.
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/export/frame_table.h"
#include "tool/render/report_json.h"
#include "tool/web/history.h"
#include "tool/web/shapes.h"
#include "tool/web/sources.h"
#include "tool/web/web.h"

enum { FLAG_INLINED = 1, FLAG_HIDDEN = 2, FLAG_ALLOCATOR = 4, FLAG_MARK = 8 };

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

static void put_numbers(struct writer *writer, const char *name, struct column *column) {
    sink_put_column(&writer->web->sink, name, CHUNK_NUMBERS, column);
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
           (frame->is_allocator ? FLAG_ALLOCATOR : 0) | (is_mark ? FLAG_MARK : 0);
}

static void put_frames(struct writer *writer) {
    struct column function = {0}, file = {0}, line = {0}, module = {0}, flags = {0}, offset = {0};
    for (size_t i = 0; i < writer->frames.frames.count; i++) {
        const struct frame *frame = writer->frames.frames.items[i];
        column_put_number(&function, number_of(writer, frame->function));
        column_put_number(&file, number_of(writer, frame->file));
        column_put_number(&line, frame->line);
        column_put_number(&module, number_of(writer, frame->module));
        column_put_number(&flags, flags_of(writer, frame));
        column_put_number(&offset, frame->function ? 0 : (int64_t)frame->offset);
    }
    put_numbers(writer, "frame.function", &function);
    put_numbers(writer, "frame.file", &file);
    put_numbers(writer, "frame.line", &line);
    put_numbers(writer, "frame.module", &module);
    put_numbers(writer, "frame.flags", &flags);
    put_numbers(writer, "frame.offset", &offset);
}

static void put_places(struct writer *writer) {
    struct column counts = {0}, frames = {0};
    const struct frame_table *table = &writer->frames;
    size_t places = writer->about->export->profile->places.list.count;
    for (size_t place = 0; place < places; place++) {
        struct frame_slice slice = table->slices[place];
        column_put_number(&counts, slice.count);
        for (uint32_t i = 0; i < slice.count; i++)
            column_put_number(&frames, table->numbers.items[slice.first + i]);
    }
    put_numbers(writer, "place.count", &counts);
    put_numbers(writer, "place.frames", &frames);
}

static void put_nodes(struct writer *writer) {
    struct column parents = {0}, places = {0};
    const struct tree *tree = &writer->about->export->profile->tree;
    for (uint32_t node = 1; node < tree->nodes.count; node++) {
        column_put_number(&parents, (int64_t)node - tree->nodes.items[node].parent);
        column_put_number(&places, tree->nodes.items[node].place);
    }
    put_numbers(writer, "node.back", &parents);
    put_numbers(writer, "node.place", &places);
}

static void put_stacks(struct writer *writer) {
    struct column node = {0}, calls = {0}, allocated = {0}, peak = {0}, peak_blocks = {0};
    struct column exit = {0}, exit_blocks = {0}, temporary = {0}, slack = {0};
    const struct profile *profile = writer->about->export->profile;
    uint32_t last = 0;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        column_put_number(&node, (int64_t)stack->node - last);
        last = stack->node;
        column_put_number(&calls, (int64_t)stack->allocations);
        column_put_number(&allocated, (int64_t)stack->allocated_bytes);
        column_put_number(&peak, stack->peak_bytes);
        column_put_number(&peak_blocks, stack->peak_blocks);
        column_put_number(&exit, stack->exit_bytes);
        column_put_number(&exit_blocks, stack->exit_blocks);
        column_put_number(&temporary, (int64_t)stack->temporary);
        column_put_number(&slack, (int64_t)stack->slack_bytes);
    }
    put_numbers(writer, "stack.node", &node);
    put_numbers(writer, "stack.calls", &calls);
    put_numbers(writer, "stack.allocated", &allocated);
    put_numbers(writer, "stack.peak", &peak);
    put_numbers(writer, "stack.peak_blocks", &peak_blocks);
    put_numbers(writer, "stack.exit", &exit);
    put_numbers(writer, "stack.exit_blocks", &exit_blocks);
    put_numbers(writer, "stack.temporary", &temporary);
    put_numbers(writer, "stack.slack", &slack);
}

// Half the widths of the 95 % intervals, where stacks are estimates.
static void put_intervals(struct writer *writer) {
    static const char *const names[ESTIMATED_COUNT] = {"stack.peak_interval", "stack.exit_interval",
                                                       "stack.allocated_interval"};
    const struct profile *profile = writer->about->export->profile;
    if (!profile->sampling.is_on) return;
    for (size_t kind = 0; kind < ESTIMATED_COUNT; kind++) {
        struct column column = {0};
        for (size_t i = 0; i < profile->stack_count; i++)
            column_put_number(&column,
                              estimate_interval(profile->stacks[i].estimates[kind].bytes_variance));
        put_numbers(writer, names[kind], &column);
    }
}

static void put_points(struct writer *writer) {
    const struct recording *recording = writer->about->export->profile->recording;
    struct column index = {0}, low = {0}, high = {0}, last = {0}, allocated = {0}, calls = {0};
    struct cairn_point point;
    size_t before = 0;
    for (size_t i = 0; recording_point(recording, i, &point); i++) {
        if (!point.is_used) continue;
        column_put_number(&index, (int64_t)(i - before));
        before = i;
        column_put_number(&low, point.min_bytes);
        column_put_number(&high, point.max_bytes);
        column_put_number(&last, point.last_bytes);
        column_put_number(&allocated, (int64_t)point.allocated_bytes);
        column_put_number(&calls, (int64_t)point.allocations);
    }
    put_numbers(writer, "point.index", &index);
    put_numbers(writer, "point.low", &low);
    put_numbers(writer, "point.high", &high);
    put_numbers(writer, "point.last", &last);
    put_numbers(writer, "point.allocated", &allocated);
    put_numbers(writer, "point.calls", &calls);
}

static void put_facts(struct writer *writer, struct json *json) {
    static const char *const roles[] = {[WEB_ONE] = "one",
                                        [WEB_PROCESS] = "process",
                                        [WEB_BEFORE] = "before",
                                        [WEB_AFTER] = "after"};
    const struct export *export = writer->about->export;
    const struct profile *profile = export->profile;
    json_open_object(json, NULL);
    json_put_string(json, "tool", export->tool_version);
    json_put_string(json, "role", roles[writer->about->role]);
    json_put_string(json, "program", export->program);
    json_put_string(json, "path", writer->about->path);
    json_put_string(json, "ending", writer->about->ending);
    json_put_string(json, "empty", writer->about->empty);
    json_put_string(json, "trust_line", export->trust);
    json_put_string(json, "executable", profile->recording->header.executable);
    json_put_uint(json, "point_ns", profile->recording->header.totals.point_ns);
    json_put_bool(json, "has_ended", profile_has_ended(profile));
    report_json_put_facts(json, profile, export->names);
    report_json_put_threads(json, profile);
    json_close(json);
}

static bool put_heading(struct writer *writer) {
    char *text = NULL;
    size_t size = 0;
    struct json json;
    FILE *out = open_memstream(&text, &size);
    if (!out) return error_set(writer->error, "no memory for the page");
    json_start(&json, out);
    put_facts(writer, &json);
    bool is_ok = !fclose(out) || error_set(writer->error, "no memory for the page");
    if (is_ok) sink_put_chunk(&writer->web->sink, "profile", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

bool web_put_profile(struct web *web, const struct web_profile *about, struct error *error) {
    struct writer writer = {.web = web, .about = about, .error = error};
    if (!frame_table_build(&writer.frames, about->export, FRAMES_MARKED, error)) return false;
    bool is_ok = put_heading(&writer);
    if (is_ok) {
        put_frames(&writer);
        put_places(&writer);
        put_nodes(&writer);
        put_stacks(&writer);
        put_intervals(&writer);
        put_points(&writer);
        put_texts(&writer);
        is_ok = history_put(&web->sink, about->export->profile, error) &&
                shapes_put(&web->sink, about->export->profile, error) &&
                sources_put(&web->sink, &writer.frames, error);
    }
    array_free(&writer.texts.list);
    index_table_free(&writer.texts.index);
    frame_table_free(&writer.frames);
    return is_ok;
}
