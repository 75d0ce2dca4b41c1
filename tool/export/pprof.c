// SPDX-License-Identifier: Apache-2.0
// pprof: profile.proto, compressed with gzip. Samples come first and give places their numbers as
// they are met (code_tables.h); what they refer to follows, and the texts come last, so that
// nothing but tables of places, functions and texts is in memory.
//
// Lines of a location are the functions inlined there, innermost first. A mapping is what pprof
// needs to look up names by itself.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/gzip.h"
#include "tool/base/protobuf.h"
#include "tool/export/code_tables.h"
#include "tool/export/sample_types.h"
#include "tool/model/all_heaps.h"
#include "tool/model/contexts.h"

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_TIME_NS = 9,
    PROFILE_DURATION_NS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
};
enum value_type_field { VALUE_TYPE_NAME = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };
enum mapping_field {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINES = 10,
};
enum location_field {
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4
};
enum function_field { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM = 3, FUNCTION_FILE = 4 };

struct writer {
    const struct export *export;
    FILE *out;
    struct sample_types types;
    struct code_tables tables;
    struct byte_buffer message, inner;
    uint32_t bytes_text;  // "bytes"
    struct contexts contexts;
    struct context_cell *cells;  // by stack and set of labels; NULL: there are no labels
    size_t cell_count, next_cell;
};

static uint32_t text_of(struct writer *writer, const char *text) {
    return strings_number(&writer->tables.strings, text);
}

static void put_type(struct writer *writer, unsigned field, const char *name, const char *unit) {
    message_put(&writer->message, VALUE_TYPE_NAME, text_of(writer, name));
    message_put(&writer->message, VALUE_TYPE_UNIT, text_of(writer, unit));
    message_write(writer->out, field, &writer->message);
}

static void put_comment(struct writer *writer, const char *format, const char *text) {
    enum { COMMENT_BYTES = 4096 };
    char comment[COMMENT_BYTES];
    snprintf(comment, sizeof comment, format, text);
    message_write_integer(writer->out, PROFILE_COMMENT, text_of(writer, comment));
}

static void put_times(struct writer *writer) {
    const struct sample_span span = sample_span_of(writer->export);
    message_write_integer(writer->out, PROFILE_TIME_NS, span.start_unix_ns);
    message_write_integer(writer->out, PROFILE_DURATION_NS, span.duration_ns);
}

static void put_facts(struct writer *writer) {
    const struct export *export = writer->export;
    const struct sample_types *types = &writer->types;
    for (size_t i = 0; i < types->count; i++)
        put_type(writer, PROFILE_SAMPLE_TYPE, types->types[i].name, types->types[i].unit);
    put_type(writer, PROFILE_PERIOD_TYPE, "space", "bytes");
    message_write_integer(writer->out, PROFILE_PERIOD, sample_period(export->profile->recording));
    message_write_integer(writer->out, PROFILE_DEFAULT_TYPE,
                          text_of(writer, types->types[types->usual].name));
    put_times(writer);
    put_comment(writer, "cairn %s", export->tool_version);
    if (export->command) put_comment(writer, "command: %s", export->command);
    put_comment(writer, "%s", export->trust);
}

static void put_values(struct writer *writer, const struct stack *stack) {
    for (size_t i = 0; i < writer->types.count; i++)
        message_put_bare(&writer->inner,
                         (uint64_t)sample_type_value(&writer->types.types[i], stack));
    message_put_message(&writer->message, SAMPLE_VALUE, &writer->inner);
}

static void put_labels(struct writer *writer, const struct stack *stack) {
    uint64_t mean = stack->allocations ? stack->allocated_bytes / stack->allocations : 0;
    if (mean) {
        message_put(&writer->inner, LABEL_KEY, writer->bytes_text);
        message_put(&writer->inner, LABEL_NUMBER, mean);
        message_put(&writer->inner, LABEL_UNIT, writer->bytes_text);
        message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
    }
    const char *heap = profile_heap_of(writer->export->profile, stack);
    if (heap) {
        message_put(&writer->inner, LABEL_KEY, text_of(writer, "heap"));
        message_put(&writer->inner, LABEL_TEXT, text_of(writer, heap));
        message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
    }
    if (!stack->cut || stack->cut == CAIRN_CUT_GUESSED) return;
    message_put(&writer->inner, LABEL_KEY, text_of(writer, "stack_incomplete"));
    message_put(&writer->inner, LABEL_TEXT, text_of(writer, cut_key(stack->cut)));
    message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
}

// What was left out for the sake of an engine's limits, as one.
static void put_folded(struct writer *writer) {
    const struct export_interval *interval = writer->export->interval;
    if (!interval || !interval->folded) return;
    message_put_bare(&writer->inner, code_tables_folded(&writer->tables));
    message_put_message(&writer->message, SAMPLE_LOCATION, &writer->inner);
    put_values(writer, interval->folded);
    message_write(writer->out, PROFILE_SAMPLE, &writer->message);
}

// The labels that the program gave.
static void put_context(struct writer *writer, const struct context *context) {
    for (size_t i = 0; i < context->label_count; i++) {
        char key[CAIRN_LABEL_TEXT];
        const char *label = context->labels[i];
        size_t length = strcspn(label, "=");
        snprintf(key, sizeof key, "%.*s", (int)length, label);
        message_put(&writer->inner, LABEL_KEY, text_of(writer, key));
        message_put(&writer->inner, LABEL_TEXT, text_of(writer, label + length + 1));
        message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
    }
}

static void put_sample(struct writer *writer, const struct stack *stack,
                       const struct context *context) {
    if (!stack->allocations && !stack->exit_bytes && !stack->peak_bytes) return;
    code_tables_put_stack(&writer->tables, &writer->inner, stack->node);
    message_put_message(&writer->message, SAMPLE_LOCATION, &writer->inner);
    put_values(writer, stack);
    put_labels(writer, stack);
    put_context(writer, context);
    message_write(writer->out, PROFILE_SAMPLE, &writer->message);
}

// Adds up the cells of a stack that are of one set; the set.
static uint32_t next_part(struct writer *writer, uint32_t stack, struct stack *part) {
    const struct context_cell *first = &writer->cells[writer->next_cell];
    while (writer->next_cell < writer->cell_count) {
        const struct context_cell *cell = &writer->cells[writer->next_cell];
        struct cell_values values;
        if (cell->stack != stack || cell->context != first->context) break;
        if (profile_cell(writer->export->profile, cell->cell, &values)) stack_add(part, &values);
        writer->next_cell++;
    }
    return first->context;
}

static bool has_cell_of(const struct writer *writer, uint32_t stack) {
    return writer->cells && writer->next_cell < writer->cell_count &&
           writer->cells[writer->next_cell].stack == stack;
}

// A sample for each set of labels. What the cells do not have (they are as at the end, a snapshot
// is not) stays without.
static void put_parts(struct writer *writer, uint32_t index) {
    struct stack left = writer->export->profile->stacks[index];
    while (has_cell_of(writer, index)) {
        struct stack_more more = {0};
        struct stack part = {.node = left.node, .cut = left.cut, .heap = left.heap, .more = &more};
        uint32_t context = next_part(writer, index, &part);
        bool is_of_it =
            part.allocations <= left.allocations && part.allocated_bytes <= left.allocated_bytes;
        if (!context || !is_of_it) continue;
        put_sample(writer, &part, &writer->contexts.list[context]);
        left.allocations -= part.allocations;
        left.allocated_bytes -= part.allocated_bytes;
        left.exit_blocks -= part.exit_blocks;
        left.exit_bytes -= part.exit_bytes;
        left.peak_blocks -= part.peak_blocks;
        left.peak_bytes -= part.peak_bytes;
    }
    put_sample(writer, &left, &(struct context){0});
}

static void sort_cells(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    // cells are of the whole recording
    if (writer->export->interval || !profile->cell_count || !profile->recording) return;
    writer->tables.has_failed |= !contexts_read(&writer->contexts, profile->recording, NULL);
    if (writer->tables.has_failed || writer->contexts.count < 2) return;
    writer->cells = contexts_sort_cells(&writer->contexts, profile, &writer->cell_count);
    writer->tables.has_failed |= !writer->cells;
}

static void put_samples(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    sort_cells(writer);
    for (uint32_t i = 0; i < profile->stack_count && !writer->tables.has_failed; i++)
        put_parts(writer, i);
    put_folded(writer);
}

static void put_drop_frames(struct writer *writer) {
    if (writer->export->has_all_frames) return;
    char *pattern = export_drop_frames(writer->export);
    writer->tables.has_failed |= !pattern;
    if (pattern && *pattern)
        message_write_integer(writer->out, PROFILE_DROP_FRAMES, text_of(writer, pattern));
    free(pattern);
}

static void put_location(struct writer *writer, uint32_t number) {
    struct code_location location = code_tables_location(&writer->tables, number);
    message_put(&writer->message, LOCATION_ID, number);
    message_put(&writer->message, LOCATION_MAPPING, location.mapping);
    message_put(&writer->message, LOCATION_ADDRESS, location.address);
    code_tables_put_lines(&writer->tables, &location, &writer->inner, LOCATION_LINE,
                          &writer->message);
    message_write(writer->out, PROFILE_LOCATION, &writer->message);
}

static void put_mapping(struct writer *writer, uint32_t number) {
    const struct code_mapping *mapping = &writer->tables.mappings.items[number - 1];
    struct byte_buffer *message = &writer->message;
    char build_id[CODE_BUILD_ID_BYTES];
    code_mapping_build_id(&writer->tables, mapping, build_id);
    message_put(message, MAPPING_ID, number);
    message_put(message, MAPPING_START, mapping->start);
    message_put(message, MAPPING_LIMIT, mapping->limit);
    message_put(message, MAPPING_OFFSET, mapping->offset);
    message_put(message, MAPPING_FILE,
                text_of(writer, code_mapping_path(&writer->tables, mapping)));
    message_put(message, MAPPING_BUILD_ID, text_of(writer, build_id));
    message_put(message, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
    message_put(message, MAPPING_HAS_FILES, mapping->has_files);
    message_put(message, MAPPING_HAS_LINES, mapping->has_lines);
    message_put(message, MAPPING_HAS_INLINES, mapping->has_inlines);
    message_write(writer->out, PROFILE_MAPPING, message);
}

static void put_function(struct writer *writer, uint32_t number) {
    const struct code_function *function = &writer->tables.functions.items[number - 1];
    message_put(&writer->message, FUNCTION_ID, number);
    message_put(&writer->message, FUNCTION_NAME, function->name);
    message_put(&writer->message, FUNCTION_SYSTEM, function->name);
    message_put(&writer->message, FUNCTION_FILE, function->file);
    message_write(writer->out, PROFILE_FUNCTION, &writer->message);
}

static void put_tables(struct writer *writer) {
    struct code_tables *tables = &writer->tables;
    code_tables_list_mappings(tables);
    if (tables->has_failed) return;
    for (uint32_t i = 1; i <= tables->places.count; i++) put_location(writer, i);
    for (uint32_t i = 1; i <= tables->mappings.count; i++) put_mapping(writer, i);
    for (uint32_t i = 1; i <= tables->functions.count; i++) put_function(writer, i);
    for (size_t i = 0; i < tables->strings.list.count; i++) {
        const char *text = tables->strings.list.items[i];
        message_write_bytes(writer->out, PROFILE_STRING, text, strlen(text));
    }
}

static bool write_all(struct writer *writer) {
    struct code_tables *tables = &writer->tables;
    if (!code_tables_start(tables, writer->export)) return false;
    put_facts(writer);
    writer->bytes_text = text_of(writer, "bytes");
    put_samples(writer);
    if (!tables->has_failed) put_drop_frames(writer);
    if (!tables->has_failed) put_tables(writer);
    return !tables->has_failed && !tables->strings.has_failed && !writer->message.has_failed &&
           !writer->inner.has_failed;
}

bool export_pprof_plain(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {.export = export, .out = out, .types = sample_types_of(export)};
    bool is_ok = write_all(&writer);
    contexts_free(&writer.contexts);
    free(writer.cells);
    code_tables_free(&writer.tables);
    byte_buffer_free(&writer.message);
    byte_buffer_free(&writer.inner);
    return is_ok || error_set(error, "no memory for the tables of pprof");
}

bool export_pprof(FILE *out, const struct export *export, struct error *error) {
    FILE *packed = gzip_open(out, error);
    if (!packed) return false;
    bool is_ok = export_pprof_plain(packed, export, error);
    fclose(packed);
    return is_ok;
}
