// SPDX-License-Identifier: Apache-2.0
#include "tool/render/stacks_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tool/render/freed_by.h"
#include "tool/render/json_values.h"
#include "tool/render/mappings.h"
#include "tool/render/shapes.h"

// The frames of each place as they are written, since many stacks go through the same places.
struct written_place {
    char *text;  // NULL: not written yet
    size_t length;
};

struct stack_writer {
    struct json *json;
    const struct profile *profile;
    const struct frame_names *names;
    struct shape shape;
    struct shape_free_stack *free_stacks;  // of all stacks; NULL: not recorded
    size_t free_stack_count;
    uint64_t *node_ids;             // NULL: not recorded
    size_t depth;                   // frames of a stack, 0: all
    struct written_place *written;  // by place
    bool has_at;                    // --at, --between, --since
};

static bool write_place(const struct stack_writer *writer, uint32_t place) {
    struct written_place *written = &writer->written[place];
    struct json json;
    size_t count;
    const struct frame *frames = writer->names->of_place(writer->names->context, place, &count);
    FILE *out = open_memstream(&written->text, &written->length);
    if (!out) return false;
    json_start_members(&json, out);
    for (size_t i = 0; i < count; i++) json_values_put_frame(&json, &frames[i]);
    return !fclose(out) && written->text;
}

// Every frame is here: which frames are internal is the reader's choice.
static bool put_all_frames(const struct stack_writer *writer, uint32_t node) {
    const struct tree_node *nodes = writer->profile->tree.nodes.items;
    const struct place *places = writer->profile->places.list.items;
    for (; node != TREE_ROOT; node = nodes[node].parent) {
        uint32_t place = nodes[node].place;
        const struct written_place *written = &writer->written[place];
        if (places[place].cut) continue;
        if (!written->text && !write_place(writer, place)) return false;
        if (written->length) json_put_written(writer->json, written->text, written->length);
    }
    return true;
}

static bool put_frames(const struct stack_writer *writer, uint32_t node) {
    struct frame_list frames = {.are_all_shown = true};
    const struct frame *frame;
    size_t index = 0;
    bool is_ok = true;
    json_open_array(writer->json, "frames");
    if (writer->depth) {
        is_ok = frame_list_fill(&frames, writer->profile, writer->names, node, 0);
        for (size_t i = 0; i < writer->depth && (frame = frame_list_next(&frames, &index)); i++)
            if (!frame_is_bucket(frame)) json_values_put_frame(writer->json, frame);
    } else {
        is_ok = put_all_frames(writer, node);
    }
    json_close(writer->json);
    frame_list_free(&frames);
    return is_ok;
}

static bool put_mapped_stack(const struct stack_writer *writer, const struct stack *stack) {
    struct json *json = writer->json;
    json_open_object(json, NULL);
    bool is_ok = put_frames(writer, stack->node);
    mapped_json_put_stack(json, stack);
    json_close(json);
    return is_ok;
}

static void put_id(struct json *json, uint64_t id) {
    char text[2 * sizeof id + 1];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    json_put_string(json, "id", text);
}

// The stacks that freed its blocks, the most bytes first.
static void put_free_stacks(const struct stack_writer *writer, uint32_t stack_number) {
    struct json *json = writer->json;
    size_t count;
    const struct shape_free_stack *own =
        shape_free_stacks_of(writer->free_stacks, writer->free_stack_count, stack_number, &count);
    json_open_array(json, "free_stacks");
    for (size_t i = 0; i < count; i++) {
        json_open_object(json, NULL);
        put_id(json, writer->node_ids[own[i].node]);
        json_put_uint(json, "frees", own[i].frees);
        json_put_uint(json, "bytes", own[i].bytes);
        json_close(json);
    }
    json_close(json);
}

static bool put_stack(const struct stack_writer *writer, const struct stack *stack) {
    struct json *json = writer->json;
    json_open_object(json, NULL);
    put_id(json, stack->id);
    json_put_string(json, "incomplete", stack->cut ? cut_key(stack->cut) : NULL);
    bool is_ok = put_frames(writer, stack->node);
    json_values_put_values(json, stack, writer->profile);
    if (writer->has_at) json_put_int(json, "at_blocks", stack->at_blocks);
    if (writer->has_at) json_put_int(json, "at_bytes", stack->at_bytes);
    shape_json_put(json, &writer->shape, stack->number);
    if (writer->free_stacks) put_free_stacks(writer, stack->number);
    if (writer->profile->sampling.is_on)
        json_values_put_estimates(json, stack_more(stack)->estimates, writer->has_at);
    json_close(json);
    return is_ok;
}

static bool writer_open(struct stack_writer *writer, const struct view_options *view) {
    const struct profile *profile = writer->profile;
    writer->depth = view->depth;
    writer->has_at = view->by == MEASURE_AT || view->by == MEASURE_AT_BLOCKS;
    writer->written = calloc(profile->places.list.count + 1, sizeof *writer->written);
    if (!writer->written || !shape_build(&writer->shape, profile, NULL)) return false;
    if (!free_stacks_has_any(profile)) return true;
    writer->free_stacks = shape_free_stacks(profile, &writer->free_stack_count);
    writer->node_ids = profile_node_ids(profile);
    return writer->free_stacks && writer->node_ids;
}

static void writer_close(struct stack_writer *writer) {
    size_t place_count = writer->written ? writer->profile->places.list.count : 0;
    for (size_t i = 0; i < place_count; i++) free(writer->written[i].text);
    shape_free(&writer->shape);
    free(writer->free_stacks);
    free(writer->node_ids);
    free(writer->written);
}

static bool put_stacks(const struct stack_writer *writer, const struct view_options *view) {
    size_t count;
    uint32_t *ranking = measure_rank_all(view->by, writer->profile, &count);
    bool is_ok = ranking != NULL;
    if (view->top && view->top < count) count = view->top;
    json_open_array(writer->json, "stacks");
    for (size_t i = 0; i < count && is_ok; i++)
        is_ok = put_stack(writer, &writer->profile->stacks[ranking[i]]);
    json_close(writer->json);
    free(ranking);
    return is_ok;
}

// Each stack that freed, once.
static bool put_freeing_stacks(const struct stack_writer *writer) {
    struct json *json = writer->json;
    bool *are_put = calloc(writer->profile->tree.nodes.count, sizeof *are_put);
    bool is_ok = are_put != NULL;
    json_open_array(json, "freeing_stacks");
    for (size_t i = 0; i < writer->free_stack_count && is_ok; i++) {
        uint32_t node = writer->free_stacks[i].node;
        if (are_put[node]) continue;
        are_put[node] = true;
        json_open_object(json, NULL);
        put_id(json, writer->node_ids[node]);
        is_ok = put_frames(writer, node);
        json_close(json);
    }
    json_close(json);
    free(are_put);
    return is_ok;
}

bool stacks_json_put(struct json *json, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view) {
    struct stack_writer writer = {.json = json, .profile = profile, .names = names};
    bool is_ok = writer_open(&writer, view) && put_stacks(&writer, view) &&
                 (!writer.free_stacks || put_freeing_stacks(&writer));
    writer_close(&writer);
    return is_ok;
}

bool stacks_json_put_mapped(struct json *json, const struct profile *profile,
                            const struct frame_names *names, const struct view_options *view) {
    size_t place_count = profile->places.list.count;
    if (!profile->mapped.is_recorded) {
        json_put_null(json, "mappings");
        return true;
    }
    struct written_place *written = calloc(place_count + 1, sizeof *written);
    const struct stack_writer writer = {
        .json = json, .profile = profile, .names = names, .depth = view->depth, .written = written};
    bool is_ok = written != NULL;
    json_open_object(json, "mappings");
    mapped_json_put(json, profile);
    json_open_array(json, "stacks");
    for (size_t i = 0; i < profile->mapped.stack_count && is_ok; i++)
        is_ok = put_mapped_stack(&writer, &profile->mapped.stacks[i]);
    json_close(json);
    json_close(json);
    for (size_t i = 0; written && i < place_count; i++) free(written[i].text);
    free(written);
    return is_ok;
}
