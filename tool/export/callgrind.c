// SPDX-License-Identifier: Apache-2.0
// Callgrind's profile format, for callgrind_annotate and KCachegrind. Its events are the measures;
// what a function allocated itself are its own costs, what its callees allocated are calls with
// inclusive costs. An edge counts once a stack, however often the stack goes through it.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/export/frame_table.h"

struct costs {
    int64_t values[MEASURE_COUNT];
};

// Own costs of a function at a line (callee NONE), or those of the calls from there.
struct edge {
    uint32_t caller, callee;  // functions
    uint32_t line;
    uint32_t last_stack;  // counted already for this one, plus 1
    struct costs costs;
};
#define NO_CALLEE UINT32_MAX

struct writer {
    FILE *out;
    const struct export *export;
    struct frame_table frames;
    uint32_t *function_of_frame;
    ARRAY(const struct frame *) functions;  // one of its frames each
    struct index_table function_table;
    bool *is_named;  // by function: its name has been written
    ARRAY(struct edge) edges;
    struct index_table edge_table;
    enum measure order[EXPORT_MEASURES + 1];  // the chosen one first
    size_t order_count;
};

static uint32_t function_of(struct writer *writer, const struct frame *frame) {
    uint64_t hash = frame_hash(frame, false);
    struct index_probe probe = index_probe_start(&writer->function_table, hash);
    for (uint32_t index; index_probe_next(&writer->function_table, &probe, &index);)
        if (frame_is_same_function(frame, writer->functions.items[index])) return index;
    uint32_t added = (uint32_t)writer->functions.count;
    const struct frame **slot = array_push(&writer->functions);
    if (!slot || !index_table_insert(&writer->function_table, hash, added)) return UINT32_MAX;
    *slot = frame;
    return added;
}

static bool list_functions(struct writer *writer) {
    size_t count = writer->frames.frames.count;
    writer->function_of_frame = calloc(count + 1, sizeof *writer->function_of_frame);
    for (size_t i = 0; writer->function_of_frame && i < count; i++) {
        uint32_t function = function_of(writer, writer->frames.frames.items[i]);
        if (function == UINT32_MAX) return false;
        writer->function_of_frame[i] = function;
    }
    writer->is_named = calloc(writer->functions.count + 1, sizeof *writer->is_named);
    return writer->function_of_frame && writer->is_named;
}

static struct edge *edge_of(struct writer *writer, uint32_t caller, uint32_t line,
                            uint32_t callee) {
    uint64_t hash = hash_mix(hash_mix(index_table_seed(), (uint64_t)caller << 32 | callee), line);
    struct index_probe probe = index_probe_start(&writer->edge_table, hash);
    for (uint32_t index; index_probe_next(&writer->edge_table, &probe, &index);) {
        struct edge *known = &writer->edges.items[index];
        if (known->caller == caller && known->callee == callee && known->line == line) return known;
    }
    struct edge *edge = array_push(&writer->edges);
    if (!edge) return NULL;
    *edge = (struct edge){.caller = caller, .callee = callee, .line = line};
    uint32_t index = (uint32_t)writer->edges.count - 1;
    return index_table_insert(&writer->edge_table, hash, index) ? edge : NULL;
}

static void edge_add(struct edge *edge, uint32_t stack, const struct costs *costs) {
    if (edge->last_stack == stack + 1) return;
    edge->last_stack = stack + 1;
    for (int i = 0; i < MEASURE_COUNT; i++)
        edge->costs.values[i] =
            (int64_t)((uint64_t)edge->costs.values[i] + (uint64_t)costs->values[i]);
}

static bool add_stack(struct writer *writer, uint32_t index) {
    const struct stack *stack = &writer->export->profile->stacks[index];
    struct costs costs;
    for (int i = 0; i < MEASURE_COUNT; i++)
        costs.values[i] = measure_stack((enum measure)i, stack).value;
    if (!frame_table_stack(&writer->frames, stack->node)) return false;
    uint32_t callee = NO_CALLEE;
    for (size_t i = 0; i < writer->frames.stack.count; i++) {
        uint32_t frame = writer->frames.stack.items[i];
        uint32_t function = writer->function_of_frame[frame];
        unsigned line = writer->frames.frames.items[frame]->line;
        struct edge *edge = edge_of(writer, function, line, callee);
        if (!edge) return false;
        edge_add(edge, index, &costs);
        callee = function;
    }
    return true;
}

static void put_name(FILE *out, const char *key, uint32_t number, const char *name, bool is_first) {
    char text[FRAME_TITLE_BYTES];
    text_escape(text, sizeof text, name);
    if (is_first)
        fprintf(out, "%s=(%u) %s\n", key, number, text);
    else
        fprintf(out, "%s=(%u)\n", key, number);
}

// Every function has numbers of its own for its object, file and name, so that each is spelled
// once.
static void put_function(struct writer *writer, uint32_t function, const char *prefix) {
    const struct frame *frame = writer->functions.items[function];
    bool is_first = !writer->is_named[function];
    char title[FRAME_TITLE_BYTES], key[8];
    writer->is_named[function] = true;
    frame_title(frame, title, sizeof title);
    snprintf(key, sizeof key, "%sob", prefix);
    put_name(writer->out, key, function, frame->module ? frame->module : "???", is_first);
    snprintf(key, sizeof key, *prefix ? "cfi" : "fl");
    put_name(writer->out, key, function, frame->file ? frame->file : "???", is_first);
    snprintf(key, sizeof key, "%sfn", prefix);
    put_name(writer->out, key, function, title, is_first);
}

static void put_costs(struct writer *writer, uint32_t line, const struct costs *costs) {
    fprintf(writer->out, "%u", line);
    for (size_t i = 0; i < writer->order_count; i++) {
        int64_t value = costs->values[writer->order[i]];
        fprintf(writer->out, " %" PRId64, value > 0 ? value : 0);
    }
    fputc('\n', writer->out);
}

static int compare(const void *a, const void *b) {
    const struct edge *first = a, *second = b;
    if (first->caller != second->caller) return first->caller < second->caller ? -1 : 1;
    // own costs, whose callee is the largest number, come first
    if (first->callee != second->callee) return first->callee > second->callee ? -1 : 1;
    return (first->line > second->line) - (first->line < second->line);
}

static void put_edges(struct writer *writer) {
    if (!writer->edges.count) return;
    qsort(writer->edges.items, writer->edges.count, sizeof *writer->edges.items, compare);
    uint32_t function = UINT32_MAX;
    for (size_t i = 0; i < writer->edges.count; i++) {
        const struct edge *edge = &writer->edges.items[i];
        if (edge->caller != function) {
            fputc('\n', writer->out);
            put_function(writer, edge->caller, "");
        }
        function = edge->caller;
        if (edge->callee != NO_CALLEE) {
            int64_t calls = edge->costs.values[MEASURE_CALLS];
            put_function(writer, edge->callee, "c");
            fprintf(writer->out, "calls=%" PRId64 " 0\n", calls > 0 ? calls : 1);
        }
        put_costs(writer, edge->line, &edge->costs);
    }
}

// The name of a measure as one word.
static void put_event(FILE *out, enum measure by) {
    fputc(' ', out);
    for (const char *at = measure_name(by); *at; at++) fputc(*at == ' ' ? '_' : *at, out);
}

static void put_head(struct writer *writer) {
    char command[FRAME_TITLE_BYTES];
    const struct export *export = writer->export;
    text_escape(command, sizeof command, export->command);
    fprintf(writer->out,
            "# callgrind format\nversion: 1\ncreator: cairn %s\npid: %u\ncmd: %s\n"
            "desc: Trust: %s\npositions: line\nevents:",
            export->tool_version, export->profile->recording->header.pid, command, export->trust);
    size_t count = 0;
    writer->order[count++] = export->by;
    for (int by = 0; by < EXPORT_MEASURES; by++)
        if (by != (int)export->by && measure_is_known((enum measure)by, export->profile))
            writer->order[count++] = (enum measure)by;
    writer->order_count = count;
    for (size_t i = 0; i < count; i++) put_event(writer->out, writer->order[i]);
    fputs("\nsummary:", writer->out);
    for (size_t i = 0; i < count; i++)
        fprintf(writer->out, " %" PRId64, measure_total(writer->order[i], export->profile).value);
    fputc('\n', writer->out);
}

static bool put_all(struct writer *writer) {
    if (!list_functions(writer)) return false;
    for (uint32_t i = 0; i < writer->export->profile->stack_count; i++)
        if (!add_stack(writer, i)) return false;
    put_head(writer);
    put_edges(writer);
    return true;
}

bool export_callgrind(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {.out = out, .export = export};
    if (!frame_table_build(&writer.frames, export, FRAMES_PICTURE, error)) return false;
    bool is_ok = put_all(&writer);
    frame_table_free(&writer.frames);
    free(writer.function_of_frame);
    free(writer.is_named);
    array_free(&writer.functions);
    array_free(&writer.edges);
    index_table_free(&writer.function_table);
    index_table_free(&writer.edge_table);
    return is_ok || error_set(error, "no memory for the call graph");
}
