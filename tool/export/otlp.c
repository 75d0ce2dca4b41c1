// SPDX-License-Identifier: Apache-2.0
// OpenTelemetry's profiles (opentelemetry.proto.profiles.v1development, as of its alpha of 2026): a
// ProfilesData, which has the bytes of an ExportProfilesServiceRequest. The protocol still moves:
// its field numbers are here and nowhere else.
//
// A profile has one kind of value, so that there is one for each; they share a dictionary, in which
// number 0 of each table is an empty entry. Whether a value is of an interval or of its end
// cannot be said: alloc_* are of the interval, inuse_* of its end.
#include <stdlib.h>
#include <string.h>

#include "tool/base/protobuf.h"
#include "tool/export/code_tables.h"
#include "tool/export/sample_types.h"
#include "tool/model/all_heaps.h"

enum data_field { DATA_RESOURCE = 1, DATA_DICTIONARY = 2 };
enum resource_profiles_field { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE = 2 };
enum scope_profiles_field { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILE = 2 };
enum scope_field { SCOPE_NAME = 1, SCOPE_VERSION = 2, SCOPE_ATTRIBUTE = 3 };
enum resource_field { RESOURCE_ATTRIBUTE = 1 };
enum key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum any_value_field { ANY_VALUE_TEXT = 1 };
enum dictionary_field {
    DICTIONARY_MAPPING = 1,
    DICTIONARY_LOCATION = 2,
    DICTIONARY_FUNCTION = 3,
    DICTIONARY_LINK = 4,
    DICTIONARY_STRING = 5,
    DICTIONARY_ATTRIBUTE = 6,
    DICTIONARY_STACK = 7,
};
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_TIME = 3,
    PROFILE_DURATION = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
};
enum value_type_field { VALUE_TYPE_NAME = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4 };
enum stack_field { STACK_LOCATIONS = 1 };
enum mapping_field {
    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_OFFSET = 3,
    MAPPING_FILE = 4,
    MAPPING_ATTRIBUTES = 5,
};
enum location_field { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINE = 3 };
enum function_field { FUNCTION_NAME = 1, FUNCTION_SYSTEM = 2, FUNCTION_FILE = 3 };

struct writer {
    const struct export *export;
    struct code_tables tables;
    struct byte_buffer dictionary, scope;  // what is written in the end
    struct byte_buffer outer, message, inner;
    struct byte_buffer attributes;  // entries of the dictionary so far, but for the empty one
    uint32_t attribute_count;
    uint32_t *heap_attributes;  // by stack.heap; 0: none so far; NULL: the stacks are of one heap
};

static uint32_t text_of(struct writer *writer, const char *text) {
    return strings_number(&writer->tables.strings, text);
}

static void put_empty(struct byte_buffer *message, unsigned field) {
    message_put_bytes(message, field, NULL, 0);
}

static const struct stack *folded_of(const struct export *export) {
    return export->interval ? export->interval->folded : NULL;
}

static void put_stack(struct writer *writer) {
    message_put_message(&writer->message, STACK_LOCATIONS, &writer->inner);
    message_put_message(&writer->dictionary, DICTIONARY_STACK, &writer->message);
}

// Number i + 1 is the stack of profile->stacks[i], the one behind them what was folded.
static void put_stacks(struct writer *writer) {
    const struct export *export = writer->export;
    put_empty(&writer->dictionary, DICTIONARY_STACK);
    for (size_t i = 0; i < export->profile->stack_count; i++) {
        code_tables_put_stack(&writer->tables, &writer->inner, export->profile->stacks[i].node);
        put_stack(writer);
    }
    if (!folded_of(export)) return;
    message_put_bare(&writer->inner, code_tables_folded(&writer->tables));
    put_stack(writer);
}

static void put_value_type(struct writer *writer, unsigned field, const char *name,
                           const char *unit) {
    message_put(&writer->message, VALUE_TYPE_NAME, text_of(writer, name));
    message_put(&writer->message, VALUE_TYPE_UNIT, text_of(writer, unit));
    message_put_message(&writer->outer, field, &writer->message);
}

// Its number among those of the dictionary.
static uint32_t put_attribute(struct writer *writer, const char *key, const char *value) {
    struct byte_buffer attribute = {0};
    message_put(&attribute, ATTRIBUTE_KEY, text_of(writer, key));
    message_put_text(&writer->inner, ANY_VALUE_TEXT, value);
    message_put_message(&attribute, ATTRIBUTE_VALUE, &writer->inner);
    message_put_message(&writer->attributes, DICTIONARY_ATTRIBUTE, &attribute);
    byte_buffer_free(&attribute);
    return ++writer->attribute_count;
}

static void put_heap(struct writer *writer, const struct stack *stack) {
    const char *heap = profile_heap_of(writer->export->profile, stack);
    if (!heap || !writer->heap_attributes) return;
    uint32_t *number = &writer->heap_attributes[stack->heap];
    if (!*number) *number = put_attribute(writer, "heap", heap);
    message_put_bare(&writer->inner, *number);
    message_put_message(&writer->message, SAMPLE_ATTRIBUTES, &writer->inner);
}

static void put_sample(struct writer *writer, const struct sample_type *type, size_t number,
                       const struct stack *stack) {
    int64_t value = sample_type_value(type, stack);
    if (!value) return;
    message_put(&writer->message, SAMPLE_STACK, number);
    put_heap(writer, stack);
    message_put_bare(&writer->inner, (uint64_t)value);
    message_put_message(&writer->message, SAMPLE_VALUES, &writer->inner);
    message_put_message(&writer->outer, PROFILE_SAMPLE, &writer->message);
}

static void put_times(struct writer *writer) {
    const struct sample_span span = sample_span_of(writer->export);
    message_put_fixed(&writer->outer, PROFILE_TIME, span.start_unix_ns);
    message_put(&writer->outer, PROFILE_DURATION, span.duration_ns);
}

static void put_profile(struct writer *writer, const struct sample_type *type) {
    const struct export *export = writer->export;
    const struct profile *profile = export->profile;
    put_value_type(writer, PROFILE_SAMPLE_TYPE, type->name, type->unit);
    for (size_t i = 0; i < profile->stack_count; i++)
        put_sample(writer, type, i + 1, &profile->stacks[i]);
    if (folded_of(export)) put_sample(writer, type, profile->stack_count + 1, folded_of(export));
    put_times(writer);
    put_value_type(writer, PROFILE_PERIOD_TYPE, "space", "bytes");
    message_put(&writer->outer, PROFILE_PERIOD, sample_period(profile->recording));
    message_put_message(&writer->scope, SCOPE_PROFILES_PROFILE, &writer->outer);
}

// A KeyValue as a field of `message`.
static void put_key_value(struct writer *writer, struct byte_buffer *message, unsigned field,
                          const char *key, const char *value) {
    struct byte_buffer pair = {0};
    message_put_text(&writer->inner, ANY_VALUE_TEXT, value);
    message_put_text(&pair, KEY_VALUE_KEY, key);
    message_put_message(&pair, KEY_VALUE_VALUE, &writer->inner);
    message_put_message(message, field, &pair);
    byte_buffer_free(&pair);
}

static void put_scope(struct writer *writer) {
    message_put_text(&writer->message, SCOPE_NAME, "cairn");
    message_put_text(&writer->message, SCOPE_VERSION, writer->export->tool_version);
    put_key_value(writer, &writer->message, SCOPE_ATTRIBUTE, "cairn.trust", writer->export->trust);
    message_put_message(&writer->scope, SCOPE_PROFILES_SCOPE, &writer->message);
}

// The number of an attribute that says of which build a module is; 0: that is not known.
static uint32_t build_attribute(struct writer *writer, const struct code_mapping *mapping) {
    char build_id[CODE_BUILD_ID_BYTES];
    code_mapping_build_id(&writer->tables, mapping, build_id);
    if (!*build_id) return 0;
    return put_attribute(writer, "process.executable.build_id.gnu", build_id);
}

static void put_mapping(struct writer *writer, uint32_t number) {
    const struct code_mapping *mapping = &writer->tables.mappings.items[number - 1];
    struct byte_buffer *message = &writer->message;
    uint32_t build = build_attribute(writer, mapping);
    message_put(message, MAPPING_START, mapping->start);
    message_put(message, MAPPING_LIMIT, mapping->limit);
    message_put(message, MAPPING_OFFSET, mapping->offset);
    message_put(message, MAPPING_FILE,
                text_of(writer, code_mapping_path(&writer->tables, mapping)));
    if (build) {
        message_put_bare(&writer->inner, build);
        message_put_message(message, MAPPING_ATTRIBUTES, &writer->inner);
    }
    message_put_message(&writer->dictionary, DICTIONARY_MAPPING, message);
}

static void put_location(struct writer *writer, uint32_t number) {
    struct code_location location = code_tables_location(&writer->tables, number);
    message_put(&writer->message, LOCATION_MAPPING, location.mapping);
    message_put(&writer->message, LOCATION_ADDRESS, location.address);
    code_tables_put_lines(&writer->tables, &location, &writer->inner, LOCATION_LINE,
                          &writer->message);
    message_put_message(&writer->dictionary, DICTIONARY_LOCATION, &writer->message);
}

static void put_function(struct writer *writer, uint32_t number) {
    const struct code_function *function = &writer->tables.functions.items[number - 1];
    message_put(&writer->message, FUNCTION_NAME, function->name);
    message_put(&writer->message, FUNCTION_SYSTEM, function->name);
    message_put(&writer->message, FUNCTION_FILE, function->file);
    message_put_message(&writer->dictionary, DICTIONARY_FUNCTION, &writer->message);
}

static void put_tables(struct writer *writer) {
    static const unsigned with_empty[] = {DICTIONARY_MAPPING, DICTIONARY_LOCATION,
                                          DICTIONARY_FUNCTION, DICTIONARY_LINK,
                                          DICTIONARY_ATTRIBUTE};
    struct code_tables *tables = &writer->tables;
    code_tables_list_mappings(tables);
    if (tables->has_failed) return;
    for (size_t i = 0; i < sizeof with_empty / sizeof *with_empty; i++)
        put_empty(&writer->dictionary, with_empty[i]);
    for (uint32_t i = 1; i <= tables->mappings.count; i++) put_mapping(writer, i);
    byte_buffer_put(&writer->dictionary, writer->attributes.bytes, writer->attributes.size);
    for (uint32_t i = 1; i <= tables->places.count; i++) put_location(writer, i);
    for (uint32_t i = 1; i <= tables->functions.count; i++) put_function(writer, i);
    for (size_t i = 0; i < tables->strings.list.count; i++)
        message_put_text(&writer->dictionary, DICTIONARY_STRING, tables->strings.list.items[i]);
}

// What OpenTelemetry calls the labels that others have by shorter names.
static const char *attribute_name(const char *label) {
    static const struct {
        const char *label, *attribute;
    } names[] = {
        {"service_name", "service.name"}, {"instance", "host.name"},  {"pid", "process.pid"},
        {"container_id", "container.id"}, {"pod_uid", "k8s.pod.uid"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(label, names[i].label)) return names[i].attribute;
    return label;
}

static void write_resource(struct writer *writer, FILE *out) {
    const struct export *export = writer->export;
    for (size_t i = 0; i < export->label_count; i++)
        put_key_value(writer, &writer->message, RESOURCE_ATTRIBUTE,
                      attribute_name(export->labels[i].name), export->labels[i].value);
    message_put_message(&writer->outer, RESOURCE_PROFILES_RESOURCE, &writer->message);
    message_put_message(&writer->outer, RESOURCE_PROFILES_SCOPE, &writer->scope);
    message_write(out, DATA_RESOURCE, &writer->outer);
}

static bool write_all(struct writer *writer, FILE *out) {
    const struct sample_types types = sample_types_of(writer->export);
    struct code_tables *tables = &writer->tables;
    if (!code_tables_start(tables, writer->export)) return false;
    if (writer->export->profile->heap_names) {
        writer->heap_attributes =
            calloc(HEAP_NAMES + CAIRN_SCOPE_LIMIT, sizeof *writer->heap_attributes);
        if (!writer->heap_attributes) return false;
    }
    put_stacks(writer);
    put_scope(writer);
    for (size_t i = 0; i < types.count && !tables->has_failed; i++)
        put_profile(writer, &types.types[i]);
    if (!tables->has_failed) put_tables(writer);
    bool has_failed = tables->has_failed || tables->strings.has_failed ||
                      writer->dictionary.has_failed || writer->scope.has_failed ||
                      writer->outer.has_failed || writer->message.has_failed ||
                      writer->attributes.has_failed || writer->inner.has_failed;
    if (has_failed) return false;
    write_resource(writer, out);
    message_write(out, DATA_DICTIONARY, &writer->dictionary);
    return !writer->outer.has_failed;
}

bool export_otlp(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {.export = export};
    bool is_ok = write_all(&writer, out);
    code_tables_free(&writer.tables);
    byte_buffer_free(&writer.dictionary);
    byte_buffer_free(&writer.attributes);
    free(writer.heap_attributes);
    byte_buffer_free(&writer.scope);
    byte_buffer_free(&writer.outer);
    byte_buffer_free(&writer.message);
    byte_buffer_free(&writer.inner);
    return is_ok || error_set(error, "no memory for the tables of OTLP");
}
