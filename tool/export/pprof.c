// SPDX-License-Identifier: Apache-2.0
// pprof: profile.proto, compressed with gzip. Samples come first and give places their numbers as
// they are met; what they refer to follows, and the texts come last, so that nothing but tables of
// places, functions and texts is in memory.
//
// A location is a place of the code, its lines the functions inlined there, innermost first. Its
// address lies inside the call. A mapping is an executable segment of a module, which is what pprof
// needs to look up names by itself; the first one is the program's. Code without a module, and
// stacks that were not recorded, have a mapping of their own at the end.
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/gzip.h"
#include "tool/export/export.h"
#include "tool/export/protobuf.h"
#include "tool/model/contexts.h"
#include "tool/model/strings.h"

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
enum line_field { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum function_field { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM = 3, FUNCTION_FILE = 4 };

static const struct {
    const char *name, *unit;
    bool is_default[MEASURE_COUNT];
} sample_types[] = {
    {"alloc_objects", "count", {[MEASURE_CALLS] = true}},
    {"alloc_space", "bytes", {[MEASURE_ALLOCATED] = true}},
    {"inuse_objects", "count", {[MEASURE_EXIT_BLOCKS] = true}},
    {"inuse_space", "bytes", {[MEASURE_EXIT] = true}},
    {"peak_objects", "count", {[MEASURE_PEAK_BLOCKS] = true}},
    {"peak_space", "bytes", {[MEASURE_PEAK] = true}},
};
enum { SAMPLE_TYPES = sizeof sample_types / sizeof *sample_types };

struct mapping {
    uint32_t module;  // MODULE_NONE: what has no module
    uint64_t start, limit, offset;
    bool has_functions, has_files, has_lines, has_inlines;
};

struct function {
    uint32_t name, file;  // texts
};

struct writer {
    const struct export *export;
    FILE *out;
    struct strings strings;
    struct message message, inner;
    uint32_t *location_of_place;  // 0: not met yet
    ARRAY(uint32_t) places;       // by location - 1
    uint32_t unrecorded;          // location of stacks that were not recorded, or 0
    ARRAY(struct mapping) mappings;
    uint32_t *mapping_of_module;  // first one's number
    ARRAY(struct function) functions;
    struct index_table function_table;
    struct contexts contexts;
    struct context_cell *cells;  // by stack and set of labels; NULL: there are no labels
    size_t cell_count, next_cell;
    bool has_failed;
};

static void put_type(struct writer *writer, unsigned field, const char *name, const char *unit) {
    message_put(&writer->message, VALUE_TYPE_NAME, strings_number(&writer->strings, name));
    message_put(&writer->message, VALUE_TYPE_UNIT, strings_number(&writer->strings, unit));
    message_write(writer->out, field, &writer->message);
}

static void put_comment(struct writer *writer, const char *format, const char *text) {
    enum { COMMENT_BYTES = 4096 };
    char comment[COMMENT_BYTES];
    snprintf(comment, sizeof comment, format, text);
    message_write_integer(writer->out, PROFILE_COMMENT, strings_number(&writer->strings, comment));
}

// Bytes between two samples on average, as Go's heap profiles say it; the values are estimates of
// all.
static uint64_t period_of(const struct recording *recording) {
    struct cairn_sampling sampling;
    bool is_sampled = recording_sampling(recording, &sampling) && sampling.is_on;
    return is_sampled && sampling.rate_bytes ? sampling.rate_bytes : 1;
}

static void put_facts(struct writer *writer) {
    const struct export *export = writer->export;
    const struct cairn_header *header = &export->profile->recording->header;
    const char *usual = "inuse_space";
    for (size_t i = 0; i < SAMPLE_TYPES; i++) {
        put_type(writer, PROFILE_SAMPLE_TYPE, sample_types[i].name, sample_types[i].unit);
        if (export->is_by_chosen && sample_types[i].is_default[export->by])
            usual = sample_types[i].name;
    }
    put_type(writer, PROFILE_PERIOD_TYPE, "space", "bytes");
    message_write_integer(writer->out, PROFILE_PERIOD, period_of(export->profile->recording));
    message_write_integer(writer->out, PROFILE_DEFAULT_TYPE,
                          strings_number(&writer->strings, usual));
    message_write_integer(writer->out, PROFILE_TIME_NS, header->start_unix_ns);
    message_write_integer(writer->out, PROFILE_DURATION_NS,
                          recording_last_ns(export->profile->recording));
    put_comment(writer, "cairn %s", export->tool_version);
    put_comment(writer, "command: %s", export->command);
    put_comment(writer, "%s", export->trust);
}

static uint32_t location_of(struct writer *writer, uint32_t place) {
    uint32_t *location = &writer->location_of_place[place];
    if (*location) return *location;
    uint32_t *slot = array_push(&writer->places);
    if (!slot) {
        writer->has_failed = true;
        return 0;
    }
    *slot = place;
    return *location = (uint32_t)writer->places.count;
}

static uint32_t location_unrecorded(struct writer *writer) {
    uint32_t *slot = writer->unrecorded ? NULL : array_push(&writer->places);
    if (slot) {
        *slot = UINT32_MAX;
        writer->unrecorded = (uint32_t)writer->places.count;
    }
    writer->has_failed |= !writer->unrecorded;
    return writer->unrecorded;
}

static void put_locations(struct writer *writer, uint32_t node) {
    const struct profile *profile = writer->export->profile;
    const struct tree_node *nodes = profile->tree.nodes.items;
    for (; node != TREE_ROOT; node = nodes[node].parent)
        if (!profile->places.list.items[nodes[node].place].cut)
            message_put_bare(&writer->inner, location_of(writer, nodes[node].place));
    if (!writer->inner.size) message_put_bare(&writer->inner, location_unrecorded(writer));
    message_put_message(&writer->message, SAMPLE_LOCATION, &writer->inner);
}

static void put_values(struct writer *writer, const struct stack *stack) {
    const int64_t values[SAMPLE_TYPES] = {
        (int64_t)stack->allocations, (int64_t)stack->allocated_bytes,
        stack->exit_blocks,          stack->exit_bytes,
        stack->peak_blocks,          stack->peak_bytes};
    for (size_t i = 0; i < SAMPLE_TYPES; i++) message_put_bare(&writer->inner, (uint64_t)values[i]);
    message_put_message(&writer->message, SAMPLE_VALUE, &writer->inner);
}

static void put_labels(struct writer *writer, const struct stack *stack) {
    uint64_t mean = stack->allocations ? stack->allocated_bytes / stack->allocations : 0;
    if (mean) {
        uint32_t bytes = strings_number(&writer->strings, "bytes");
        message_put(&writer->inner, LABEL_KEY, bytes);
        message_put(&writer->inner, LABEL_NUMBER, mean);
        message_put(&writer->inner, LABEL_UNIT, bytes);
        message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
    }
    if (!stack->cut || stack->cut == CAIRN_CUT_GUESSED) return;
    message_put(&writer->inner, LABEL_KEY, strings_number(&writer->strings, "stack_incomplete"));
    message_put(&writer->inner, LABEL_TEXT, strings_number(&writer->strings, cut_key(stack->cut)));
    message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
}

// The labels that the program gave.
static void put_context(struct writer *writer, const struct context *context) {
    for (size_t i = 0; i < context->label_count; i++) {
        char key[CAIRN_LABEL_TEXT];
        const char *label = context->labels[i];
        size_t length = strcspn(label, "=");
        snprintf(key, sizeof key, "%.*s", (int)length, label);
        message_put(&writer->inner, LABEL_KEY, strings_number(&writer->strings, key));
        message_put(&writer->inner, LABEL_TEXT,
                    strings_number(&writer->strings, label + length + 1));
        message_put_message(&writer->message, SAMPLE_LABEL, &writer->inner);
    }
}

static void put_sample(struct writer *writer, const struct stack *stack,
                       const struct context *context) {
    if (!stack->allocations && !stack->exit_bytes && !stack->peak_bytes) return;
    put_locations(writer, stack->node);
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
        struct stack part = {.node = left.node, .cut = left.cut};
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
    if (!profile->cell_count || !profile->recording) return;
    writer->has_failed |= !contexts_read(&writer->contexts, profile->recording, NULL);
    if (writer->has_failed || writer->contexts.count < 2) return;
    writer->cells = contexts_sort_cells(&writer->contexts, profile, &writer->cell_count);
    writer->has_failed |= !writer->cells;
}

static void put_samples(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    sort_cells(writer);
    for (uint32_t i = 0; i < profile->stack_count && !writer->has_failed; i++) put_parts(writer, i);
}

static void put_drop_frames(struct writer *writer) {
    if (writer->export->has_all_frames) return;
    char *pattern = export_drop_frames(writer->export);
    writer->has_failed |= !pattern;
    if (pattern && *pattern)
        message_write_integer(writer->out, PROFILE_DROP_FRAMES,
                              strings_number(&writer->strings, pattern));
    free(pattern);
}

static void add_mapping(struct writer *writer, struct mapping mapping) {
    struct mapping *slot = array_push(&writer->mappings);
    if (slot) *slot = mapping;
    writer->has_failed |= !slot;
}

static void add_module(struct writer *writer, uint32_t index) {
    const uint64_t page_bytes = writer->export->profile->recording->header.page_bytes;
    const struct module *module = &writer->export->profile->modules.modules[index];
    if (!module->is_valid || module->same_as != index || writer->mapping_of_module[index]) return;
    writer->mapping_of_module[index] = (uint32_t)writer->mappings.count + 1;
    for (uint32_t i = 0; i < module->segment_count; i++) {
        const struct module_segment *segment = &module->segments[i];
        uint64_t start = module->bias + segment->address, into_page = start % page_bytes;
        add_mapping(writer, (struct mapping){.module = index,
                                             .start = start - into_page,
                                             .limit = start + segment->size,
                                             .offset = segment->file_offset - into_page});
    }
    if (!module->segment_count)
        add_mapping(writer, (struct mapping){
                                .module = index, .start = module->start, .limit = module->end});
}

// The program first, then all others in the order of the recording; the last one is for what has no
// module.
static void list_mappings(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    const char *program = profile->recording->header.executable;
    for (uint32_t i = 0; i < profile->modules.count; i++)
        if (!strcmp(profile->modules.modules[i].path, program)) add_module(writer, i);
    for (uint32_t i = 0; i < profile->modules.count; i++) add_module(writer, i);
    add_mapping(writer, (struct mapping){.module = MODULE_NONE, .has_functions = true});
}

static uint32_t mapping_of(const struct writer *writer, uint32_t module, uint64_t address) {
    const struct mapping *mappings = writer->mappings.items;
    uint32_t none = (uint32_t)writer->mappings.count;
    uint32_t first = module == MODULE_NONE ? 0 : writer->mapping_of_module[module];
    if (!first) return none;
    for (uint32_t i = first; i <= none && mappings[i - 1].module == module; i++)
        if (address >= mappings[i - 1].start && address < mappings[i - 1].limit) return i;
    return first;
}

static uint32_t function_of(struct writer *writer, const char *name, const char *file) {
    struct function wanted = {strings_number(&writer->strings, name),
                              strings_number(&writer->strings, file)};
    uint64_t hash = hash_mix(wanted.name, wanted.file);
    struct index_probe probe = index_probe_start(&writer->function_table, hash);
    for (uint32_t index; index_probe_next(&writer->function_table, &probe, &index);) {
        const struct function *known = &writer->functions.items[index];
        if (known->name == wanted.name && known->file == wanted.file) return index + 1;
    }
    struct function *slot = array_push(&writer->functions);
    bool is_ok = slot && index_table_insert(&writer->function_table, hash,
                                            (uint32_t)writer->functions.count - 1);
    if (slot) *slot = wanted;
    writer->has_failed |= !is_ok;
    return (uint32_t)writer->functions.count;
}

static void put_line(struct writer *writer, const char *function, const char *file, unsigned line) {
    message_put(&writer->inner, LINE_FUNCTION, function_of(writer, function, file));
    message_put(&writer->inner, LINE_NUMBER, line);
    message_put_message(&writer->message, LOCATION_LINE, &writer->inner);
}

static void put_frames(struct writer *writer, uint32_t place, struct mapping *mapping) {
    const struct frame_names *names = writer->export->names;
    size_t count;
    const struct frame *frames = names->of_place(names->context, place, &count);
    for (size_t i = 0; i < count; i++) {
        if (!frames[i].function) continue;
        put_line(writer, frames[i].function, frames[i].file, frames[i].line);
        mapping->has_functions = true;
        mapping->has_files |= frames[i].file != NULL;
        mapping->has_lines |= frames[i].line != 0;
        mapping->has_inlines |= frames[i].file != NULL;
    }
}

static void put_location(struct writer *writer, uint32_t number) {
    const struct profile *profile = writer->export->profile;
    uint32_t place = writer->places.items[number - 1], mapping = (uint32_t)writer->mappings.count;
    message_put(&writer->message, LOCATION_ID, number);
    if (number == writer->unrecorded) {
        message_put(&writer->message, LOCATION_MAPPING, mapping);
        put_line(writer, STACK_NOT_RECORDED, NULL, 0);
    } else {
        const struct place *entry = &profile->places.list.items[place];
        bool has_module = entry->module != MODULE_NONE;
        uint64_t address = entry->address;
        if (has_module) address += profile->modules.modules[entry->module].bias;
        mapping = mapping_of(writer, entry->module, address);
        message_put(&writer->message, LOCATION_MAPPING, mapping);
        message_put(&writer->message, LOCATION_ADDRESS, address);
        put_frames(writer, place, &writer->mappings.items[mapping - 1]);
    }
    message_write(writer->out, PROFILE_LOCATION, &writer->message);
}

static void put_module(struct writer *writer, uint32_t index) {
    char build_id[2 * CAIRN_BUILD_ID_MAX + 1] = "";
    const char *path = "[no module]";
    if (index != MODULE_NONE) {
        const struct module *module = &writer->export->profile->modules.modules[index];
        for (uint32_t i = 0; i < module->build_id_bytes; i++)
            snprintf(build_id + 2 * i, 3, "%02x", module->build_id[i]);
        path = module->path;
    }
    message_put(&writer->message, MAPPING_FILE, strings_number(&writer->strings, path));
    message_put(&writer->message, MAPPING_BUILD_ID, strings_number(&writer->strings, build_id));
}

static void put_mapping(struct writer *writer, uint32_t number) {
    const struct mapping *mapping = &writer->mappings.items[number - 1];
    struct message *message = &writer->message;
    message_put(message, MAPPING_ID, number);
    message_put(message, MAPPING_START, mapping->start);
    message_put(message, MAPPING_LIMIT, mapping->limit);
    message_put(message, MAPPING_OFFSET, mapping->offset);
    put_module(writer, mapping->module);
    message_put(message, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
    message_put(message, MAPPING_HAS_FILES, mapping->has_files);
    message_put(message, MAPPING_HAS_LINES, mapping->has_lines);
    message_put(message, MAPPING_HAS_INLINES, mapping->has_inlines);
    message_write(writer->out, PROFILE_MAPPING, message);
}

static void put_function(struct writer *writer, uint32_t number) {
    const struct function *function = &writer->functions.items[number - 1];
    message_put(&writer->message, FUNCTION_ID, number);
    message_put(&writer->message, FUNCTION_NAME, function->name);
    message_put(&writer->message, FUNCTION_SYSTEM, function->name);
    message_put(&writer->message, FUNCTION_FILE, function->file);
    message_write(writer->out, PROFILE_FUNCTION, &writer->message);
}

static void put_tables(struct writer *writer) {
    list_mappings(writer);
    if (writer->has_failed) return;
    for (uint32_t i = 1; i <= writer->places.count; i++) put_location(writer, i);
    for (uint32_t i = 1; i <= writer->mappings.count; i++) put_mapping(writer, i);
    for (uint32_t i = 1; i <= writer->functions.count; i++) put_function(writer, i);
    for (size_t i = 0; i < writer->strings.list.count; i++) {
        const char *text = writer->strings.list.items[i];
        message_write_bytes(writer->out, PROFILE_STRING, text, strlen(text));
    }
}

static bool write_all(struct writer *writer) {
    const struct profile *profile = writer->export->profile;
    strings_start(&writer->strings);
    writer->location_of_place = calloc(profile->places.list.count + 1, sizeof(uint32_t));
    writer->mapping_of_module = calloc(profile->modules.count + 1, sizeof(uint32_t));
    if (!writer->location_of_place || !writer->mapping_of_module) return false;
    put_facts(writer);
    put_samples(writer);
    if (!writer->has_failed) put_drop_frames(writer);
    if (!writer->has_failed) put_tables(writer);
    return !writer->has_failed && !writer->strings.has_failed && !writer->message.has_failed &&
           !writer->inner.has_failed;
}

static void writer_free(struct writer *writer) {
    contexts_free(&writer->contexts);
    free(writer->cells);
    strings_free(&writer->strings);
    message_free(&writer->message);
    message_free(&writer->inner);
    free(writer->location_of_place);
    free(writer->mapping_of_module);
    array_free(&writer->places);
    array_free(&writer->mappings);
    array_free(&writer->functions);
    index_table_free(&writer->function_table);
}

bool export_pprof(FILE *out, const struct export *export, struct error *error) {
    FILE *packed = gzip_open(out, error);
    if (!packed) return false;
    struct writer writer = {.export = export, .out = packed};
    bool is_ok = write_all(&writer);
    writer_free(&writer);
    fclose(packed);
    return is_ok || error_set(error, "no memory for the tables of pprof");
}
