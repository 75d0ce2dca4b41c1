// SPDX-License-Identifier: Apache-2.0
// Heap profiles in pprof's format (profile.proto). Sample types are known by their names:
// alloc_objects, alloc_space, inuse_objects, inuse_space, as Go and others write them, and cairn's
// own peak_objects and peak_space; "objects" and "space" alone are taken for those in use. Perfetto
// and Datadog have names of their own. Bytes may be in larger units (profile.proto, ValueType).
//
// The message is read into memory, at most MESSAGE_MAX bytes of it; every length is checked against
// what remains, and what refers to nothing is an error.
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool/import/import.h"
#include "tool/import/protobuf.h"

enum { TYPES_MAX = 16, DEPTH_MAX = 65536 };

struct location {
    uint64_t id, mapping, address;
    uint32_t first_line, line_count;
    uint32_t place_plus_1;
};

struct line {
    uint64_t function, line;
};

struct function {
    uint64_t id, name, file;
};

struct mapping {
    uint64_t id, file;
    uint64_t start, limit, offset;
};

enum value { CALLS, ALLOCATED, IN_USE_BLOCKS, IN_USE, PEAK_BLOCKS, PEAK, VALUE_COUNT };

struct reader {
    struct imported *imported;
    struct error *error;
    uint8_t *bytes;
    ARRAY(struct span) texts, samples, types;
    ARRAY(struct location) locations;
    ARRAY(struct line) lines;
    ARRAY(struct function) functions;
    ARRAY(struct mapping) mappings;
    int column[VALUE_COUNT];    // of a sample, -1: none
    int64_t unit[VALUE_COUNT];  // what one stands for
    uint64_t period;
    uint32_t *stack;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "pprof: %s", what);
}

static bool read_integers(struct reader *reader, struct span span, uint64_t *values,
                          uint32_t count) {
    return span_integers(span, values, count) || bad(reader, "a message is damaged");
}

static bool read_line(struct reader *reader, struct span span, struct location *location) {
    uint64_t values[3] = {0};
    struct line *line = array_push(&reader->lines);
    if (!line) return import_no_memory(reader->error);
    if (!read_integers(reader, span, values, 3)) return false;
    *line = (struct line){.function = values[1], .line = values[2]};
    location->line_count++;
    return true;
}

static bool read_location(struct reader *reader, struct span span) {
    struct field field;
    struct location location = {.first_line = (uint32_t)reader->lines.count};
    while (span.at < span.end) {
        if (!span_field(&span, &field)) return bad(reader, "a location is damaged");
        if (field.number == 1) location.id = field.value;
        if (field.number == 2) location.mapping = field.value;
        if (field.number == 3) location.address = field.value;
        if (field.number == 4 && field.is_bytes && !read_line(reader, field.bytes, &location))
            return false;
    }
    struct location *slot = array_push(&reader->locations);
    if (!slot) return import_no_memory(reader->error);
    *slot = location;
    return true;
}

static bool read_function(struct reader *reader, struct span span) {
    uint64_t values[5] = {0};
    struct function *slot = array_push(&reader->functions);
    if (!slot) return import_no_memory(reader->error);
    if (!read_integers(reader, span, values, 5)) return false;
    *slot = (struct function){.id = values[1], .name = values[2], .file = values[4]};
    return true;
}

static bool read_mapping(struct reader *reader, struct span span) {
    uint64_t values[6] = {0};
    struct mapping *slot = array_push(&reader->mappings);
    if (!slot) return import_no_memory(reader->error);
    if (!read_integers(reader, span, values, 6)) return false;
    *slot = (struct mapping){.id = values[1],
                             .start = values[2],
                             .limit = values[3],
                             .offset = values[4],
                             .file = values[5]};
    return true;
}

static bool keep_span(struct reader *reader, struct span span, uint32_t number) {
    struct span *slot = number == 1   ? array_push(&reader->types)
                        : number == 2 ? array_push(&reader->samples)
                                      : array_push(&reader->texts);
    if (!slot) return import_no_memory(reader->error);
    *slot = span;
    return true;
}

static bool read_field(struct reader *reader, const struct field *field) {
    struct imported *imported = reader->imported;
    if (field->number == 9) imported->start_unix_ns = field->value;
    if (field->number == 10) imported->duration_ns = field->value;
    if (field->number == 12) reader->period = field->value;
    if (!field->is_bytes) return true;
    switch (field->number) {
    case 1:
    case 2:
    case 6:
        return keep_span(reader, field->bytes, field->number);
    case 3:
        return read_mapping(reader, field->bytes);
    case 4:
        return read_location(reader, field->bytes);
    case 5:
        return read_function(reader, field->bytes);
    default:
        return true;
    }
}

// A text as a C string, for free(); NULL without memory.
static char *text_of(const struct reader *reader, uint64_t number) {
    if (number >= reader->texts.count) return strdup("");
    return span_text(reader->texts.items[number]);
}

// As `go tool pprof` reads them: multiples are of 1024. 0: not known.
static int64_t bytes_of_unit(const char *unit) {
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"", 1},          {"b", 1},          {"byte", 1},
                 {"kb", 1l << 10}, {"kib", 1l << 10}, {"kilobyte", 1l << 10},
                 {"mb", 1l << 20}, {"mib", 1l << 20}, {"megabyte", 1l << 20},
                 {"gb", 1l << 30}, {"gib", 1l << 30}, {"gigabyte", 1l << 30},
                 {"tb", 1l << 40}, {"tib", 1l << 40}, {"terabyte", 1l << 40}};
    size_t length = strlen(unit);
    if (length > 1 && (unit[length - 1] == 's' || unit[length - 1] == 'S')) length--;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && !strncasecmp(unit, units[i].name, length))
            return units[i].bytes;
    return 0;
}

// Takes the column for what its name says. False: its unit is not known.
static bool choose(struct reader *reader, const char *name, const char *unit, int column) {
    static const struct {
        const char *name;
        enum value value;
    } names[] = {{"alloc_objects", CALLS},
                 {"alloc_space", ALLOCATED},
                 {"inuse_objects", IN_USE_BLOCKS},
                 {"inuse_space", IN_USE},
                 {"objects", IN_USE_BLOCKS},
                 {"space", IN_USE},
                 {"peak_objects", PEAK_BLOCKS},
                 {"peak_space", PEAK},
                 {"alloc-samples", CALLS},
                 {"alloc-space", ALLOCATED},
                 {"heap-live-samples", IN_USE_BLOCKS},
                 {"heap-live-size", IN_USE},
                 {"heap-space", IN_USE},
                 {"inuse-objects", IN_USE_BLOCKS},
                 {"inuse-space", IN_USE},
                 {"Total malloc count", CALLS},
                 {"Total malloc size", ALLOCATED},
                 {"Unreleased malloc count", IN_USE_BLOCKS},
                 {"Unreleased malloc size", IN_USE}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum value value = names[i].value;
        if (strcmp(name, names[i].name) != 0 || reader->column[value] >= 0) continue;
        bool is_count = value == CALLS || value == IN_USE_BLOCKS || value == PEAK_BLOCKS;
        reader->column[value] = column;
        reader->unit[value] = is_count ? 1 : bytes_of_unit(unit);
        if (!reader->unit[value])
            return error_set(reader->error, "pprof: the unit \"%s\" of %s is not known", unit,
                             name);
    }
    return true;
}

static bool read_types(struct reader *reader) {
    char known[IMPORT_TEXT_BYTES / 4] = "";
    for (int i = 0; i < VALUE_COUNT; i++) reader->column[i] = -1;
    for (size_t i = 0; i < reader->types.count && i < TYPES_MAX; i++) {
        uint64_t values[3] = {0};
        if (!read_integers(reader, reader->types.items[i], values, 3)) return false;
        char *name = text_of(reader, values[1]), *unit = text_of(reader, values[2]);
        bool is_ok =
            name && unit ? choose(reader, name, unit, (int)i) : import_no_memory(reader->error);
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, " %s", name ? name : "");
        free(name);
        free(unit);
        if (!is_ok) return false;
    }
    if (reader->column[IN_USE] >= 0 || reader->column[ALLOCATED] >= 0) return true;
    return error_set(reader->error, "pprof: it has no heap in it, but the sample types%s",
                     *known ? known : ": none");
}

// Locations, functions and mappings start with their id.
static int compare_ids(const void *a, const void *b) {
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

#define SORT(array)                                                                                \
    ((array)->count ? qsort((array)->items, (array)->count, sizeof *(array)->items, compare_ids)   \
                    : (void)0)
#define FIND(array, wanted)                                                                        \
    ((array)->count                                                                                \
         ? bsearch(&(wanted), (array)->items, (array)->count, sizeof *(array)->items, compare_ids) \
         : NULL)

static bool make_lines(struct reader *reader, const struct location *location) {
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct line *line = &reader->lines.items[location->first_line + i];
        const struct function *function = FIND(&reader->functions, line->function);
        char *name = text_of(reader, function ? function->name : 0);
        char *file = text_of(reader, function ? function->file : 0);
        bool is_ok = name && file &&
                     import_frame(reader->imported, *name ? name : "?", file,
                                  line->line < INT32_MAX ? (uint32_t)line->line : 0);
        free(name);
        free(file);
        if (!is_ok) return import_no_memory(reader->error);
    }
    return true;
}

// What has no lines gets its name later, by its address.
static bool make_place(struct reader *reader, struct location *location) {
    const struct mapping *mapping = FIND(&reader->mappings, location->mapping);
    char *path = text_of(reader, mapping ? mapping->file : 0);
    uint32_t place = IMPORT_NONE;
    if (path && location->line_count)
        place = import_place(reader->imported, import_module(reader->imported, path));
    else if (path)
        place = import_address(reader->imported, location->address);
    free(path);
    location->place_plus_1 = place + 1;
    if (place == IMPORT_NONE) return import_no_memory(reader->error);
    return !location->line_count || make_lines(reader, location);
}

static bool add_mappings(struct reader *reader) {
    for (size_t i = 0; i < reader->mappings.count; i++) {
        const struct mapping *from = &reader->mappings.items[i];
        char *path = text_of(reader, from->file);
        struct import_mapping mapping = {
            .start = from->start, .end = from->limit, .offset = from->offset};
        mapping.module = path ? import_module(reader->imported, path) : IMPORT_NONE;
        free(path);
        if (mapping.module == IMPORT_NONE || !import_mapping(reader->imported, &mapping))
            return import_no_memory(reader->error);
    }
    return true;
}

static bool place_of(struct reader *reader, uint64_t id, uint32_t *place) {
    struct location *location = FIND(&reader->locations, id);
    if (!location) return bad(reader, "a sample has a location that is not there");
    if (!location->place_plus_1 && !make_place(reader, location)) return false;
    *place = location->place_plus_1 - 1;
    return true;
}

struct sample {
    int64_t values[TYPES_MAX];
    size_t value_count, depth;
};

static bool add_item(struct reader *reader, struct sample *sample, uint32_t field, uint64_t value) {
    if (field == 2) {
        if (sample->value_count < TYPES_MAX) sample->values[sample->value_count++] = (int64_t)value;
        return true;
    }
    if (sample->depth >= DEPTH_MAX) return bad(reader, "a stack is too deep");
    return place_of(reader, value, &reader->stack[sample->depth++]);
}

// Both forms of a repeated field: packed, and one by one.
static bool read_items(struct reader *reader, struct sample *sample, struct field *field) {
    if (field->number != 1 && field->number != 2) return true;
    if (!field->is_bytes) return add_item(reader, sample, field->number, field->value);
    while (field->bytes.at < field->bytes.end) {
        uint64_t value;
        if (!span_varint(&field->bytes, &value)) return bad(reader, "a sample is damaged");
        if (!add_item(reader, sample, field->number, value)) return false;
    }
    return true;
}

static int64_t value_of(const struct reader *reader, const struct sample *sample,
                        enum value wanted) {
    int column = reader->column[wanted];
    int64_t value;
    if (column < 0) return 0;
    bool is_beyond = __builtin_mul_overflow(sample->values[column], reader->unit[wanted], &value);
    return is_beyond ? INT64_MAX : value;
}

// A difference of two profiles has less than nothing of some stacks; no heap has.
static bool is_negative(const struct reader *reader, const struct sample *sample) {
    for (int i = 0; i < VALUE_COUNT; i++)
        if (reader->column[i] >= 0 && sample->values[reader->column[i]] < 0) return true;
    return false;
}

// What is live is allocated at least, and a block at least if it has bytes.
static struct import_values values_of(const struct reader *reader, const struct sample *sample) {
    struct import_values values = {.calls = value_of(reader, sample, CALLS),
                                   .allocated_bytes = value_of(reader, sample, ALLOCATED),
                                   .exit_blocks = value_of(reader, sample, IN_USE_BLOCKS),
                                   .exit_bytes = value_of(reader, sample, IN_USE),
                                   .peak_blocks = value_of(reader, sample, PEAK_BLOCKS),
                                   .peak_bytes = value_of(reader, sample, PEAK)};
    if (values.exit_bytes && !values.exit_blocks) values.exit_blocks = 1;
    if (reader->column[PEAK] < 0) {
        values.peak_blocks = values.exit_blocks;
        values.peak_bytes = values.exit_bytes;
    }
    if (values.calls < values.exit_blocks) values.calls = values.exit_blocks;
    if (values.allocated_bytes < values.exit_bytes) values.allocated_bytes = values.exit_bytes;
    if (values.allocated_bytes && !values.calls) values.calls = 1;
    return values;
}

static bool read_sample(struct reader *reader, struct span span) {
    struct field field;
    struct sample sample = {0};
    while (span.at < span.end) {
        if (!span_field(&span, &field)) return bad(reader, "a sample is damaged");
        if (!read_items(reader, &sample, &field)) return false;
    }
    if (is_negative(reader, &sample))
        return bad(reader, "it has negative values: a difference of two profiles, and no heap");
    struct import_values values = values_of(reader, &sample);
    return import_stack(reader->imported, reader->stack, sample.depth, &values) ||
           import_no_memory(reader->error);
}

static void say_what_lacks(const struct reader *reader) {
    struct imported *imported = reader->imported;
    char sampled[IMPORT_TEXT_BYTES / 4] = "";
    bool has_blocks = reader->column[IN_USE] < 0 || reader->column[IN_USE_BLOCKS] >= 0;
    bool has_calls = reader->column[ALLOCATED] < 0 || reader->column[CALLS] >= 0;
    imported->is_partial = reader->period > 1 || !has_blocks || !has_calls;
    imported->has_no_calls = reader->column[ALLOCATED] < 0;
    imported->has_no_blocks = !has_blocks;
    if (reader->period > 1)
        snprintf(sampled, sizeof sampled, " (sampled: about one block every %" PRIu64 " bytes)",
                 reader->period);
    snprintf(imported->lacks, sizeof imported->lacks, "%s%s%s%sthreads, the heap over time%s",
             has_blocks && has_calls ? "" : "numbers of blocks and calls (a stack counts as one), ",
             reader->column[PEAK] < 0 ? "the peak (what is in use counts as it), " : "",
             reader->column[ALLOCATED] < 0 ? "what was freed, " : "",
             reader->column[IN_USE] < 0 ? "what is in use, " : "", sampled);
}

// The first mapping is the program's.
static bool note_program(struct reader *reader) {
    const struct mapping *program = reader->mappings.items;
    char *path = text_of(reader, reader->mappings.count ? program->file : 0);
    struct imported *imported = reader->imported;
    if (!path) return import_no_memory(reader->error);
    snprintf(imported->command, sizeof imported->command, "%s", path);
    free(path);
    return true;
}

static bool read_all(struct reader *reader, FILE *in) {
    struct span message = {0};
    struct field field;
    reader->stack = calloc(DEPTH_MAX, sizeof *reader->stack);
    if (!reader->stack) return import_no_memory(reader->error);
    reader->bytes = span_load(in, &message);
    if (!reader->bytes) return bad(reader, "no memory for it, or it is larger than 1 GiB");
    while (message.at < message.end) {
        if (!span_field(&message, &field)) return bad(reader, "it is damaged or cut off");
        if (!read_field(reader, &field)) return false;
    }
    if (!read_types(reader) || !note_program(reader)) return false;
    SORT(&reader->locations);
    SORT(&reader->functions);
    SORT(&reader->mappings);
    if (!add_mappings(reader)) return false;
    for (size_t i = 0; i < reader->samples.count; i++)
        if (!read_sample(reader, reader->samples.items[i])) return false;
    say_what_lacks(reader);
    return true;
}

// A message of this kind starts with a sample type: field 1, bytes.
// A field that a profile can begin with, as far as the bytes at hand tell.
static bool is_profile_field(struct span *span, bool *is_cut) {
    // messages and texts, by number; comments (13) come alone or packed
    const unsigned with_bytes =
        1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 11 | 1u << 13;
    const unsigned with_number =
        1u << 7 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15;
    uint64_t tag, value;
    struct span skipped;
    *is_cut = true;
    if (!span_varint(span, &tag)) return true;
    uint64_t number = tag >> WIRE_BITS, kind = tag & ((1u << WIRE_BITS) - 1);
    unsigned allowed = kind == WIRE_BYTES ? with_bytes : kind == WIRE_VARINT ? with_number : 0;
    if (number >= sizeof allowed * CHAR_BIT || !(allowed >> number & 1)) return false;
    if (!span_varint(span, &value)) return true;
    *is_cut = kind == WIRE_BYTES && !span_skip(span, value, &skipped);
    return true;
}

// Writers begin with any field: whatever there is of the first ones has to be one of a profile.
bool import_is_pprof(const char *head, size_t size) {
    enum { FIELDS_MIN = 3 };
    if (import_is_perfetto(head, size)) return false;
    struct span span = {(const uint8_t *)head, (const uint8_t *)head + size};
    bool is_cut = false;
    size_t count = 0;
    for (; span.at < span.end && !is_cut; count++)
        if (!is_profile_field(&span, &is_cut)) return false;
    return count >= FIELDS_MIN;
}

bool import_pprof(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.imported = imported, .error = error};
    bool is_ok = read_all(&reader, in);
    imported->peak_ns = imported->duration_ns;
    free(reader.bytes);
    free(reader.stack);
    array_free(&reader.texts);
    array_free(&reader.samples);
    array_free(&reader.types);
    array_free(&reader.locations);
    array_free(&reader.lines);
    array_free(&reader.functions);
    array_free(&reader.mappings);
    return is_ok;
}
