// SPDX-License-Identifier: Apache-2.0
// The Firefox Profiler's processed profile, with the heap as native allocations. Version 49 of the
// format, which says where everything is by thread; the profiler upgrades it.
//
// Its allocations are blocks with an address, allocated and freed at times; here these are made up
// of what stacks held at moments (lifetimes.h).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/export/frame_table.h"
#include "tool/export/lifetimes.h"
#include "tool/model/strings.h"

enum { PROCESSED_VERSION = 49, GECKO_VERSION = 29, RESOURCE_LIBRARY = 1, ADDRESS_STEP = 16 };

struct writer {
    const struct export *export;
    struct json json;
    struct frame_table frames;
    struct strings strings;
    struct tree tree;      // of frames' numbers
    uint32_t *stack_node;  // by place of the stack in the profile
    struct lifetimes lifetimes;
    ARRAY(const struct frame *) functions;  // by number
    uint32_t *function_of;                  // by number of the frame
};

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for allocations");
}

// --- stacks and functions

static bool add_stack(struct writer *writer, size_t index) {
    uint32_t *node = &writer->stack_node[index];
    if (!frame_table_stack(&writer->frames, writer->export->profile->stacks[index].node))
        return false;
    *node = TREE_ROOT;
    for (size_t i = writer->frames.stack.count; i-- > 0;)
        if (!tree_child(&writer->tree, *node, writer->frames.stack.items[i], node)) return false;
    return true;
}

static bool number_functions(struct writer *writer) {
    size_t count = writer->frames.frames.count;
    struct index_table table = {0};
    bool is_ok = true;
    for (uint32_t i = 0; is_ok && i < count; i++) {
        const struct frame *frame = writer->frames.frames.items[i];
        uint64_t hash = frame_hash(frame, false);
        struct index_probe probe = index_probe_start(&table, hash);
        uint32_t number = UINT32_MAX, candidate;
        while (number == UINT32_MAX && index_probe_next(&table, &probe, &candidate))
            if (frame_is_same_function(frame, writer->functions.items[candidate]))
                number = candidate;
        if (number == UINT32_MAX) {
            const struct frame **slot = array_push(&writer->functions);
            number = (uint32_t)writer->functions.count - 1;
            is_ok = slot && index_table_insert(&table, hash, number);
            if (slot) *slot = frame;
        }
        writer->function_of[i] = number;
    }
    index_table_free(&table);
    return is_ok;
}

static bool make_tables(struct writer *writer, struct error *error) {
    size_t stack_count = writer->export->profile->stack_count;
    writer->stack_node = calloc(stack_count + 1, sizeof *writer->stack_node);
    writer->function_of = calloc(writer->frames.frames.count + 1, sizeof *writer->function_of);
    bool is_ok = writer->stack_node && writer->function_of && tree_start(&writer->tree) &&
                 number_functions(writer);
    for (size_t i = 0; is_ok && i < stack_count; i++) is_ok = add_stack(writer, i);
    return is_ok || no_memory(error);
}

// --- JSON

static void put_ms(struct writer *writer, uint64_t ns) {
    enum { NS_PER_MS = 1000000 };
    char text[48];
    int length =
        snprintf(text, sizeof text, "%" PRIu64 ".%06u", ns / NS_PER_MS, (unsigned)(ns % NS_PER_MS));
    json_put_written(&writer->json, text, (size_t)length);
}

// A column of the same value.
static void put_column(struct writer *writer, const char *key, size_t count, const char *value) {
    json_open_array(&writer->json, key);
    for (size_t i = 0; i < count; i++) json_put_written(&writer->json, value, strlen(value));
    json_close(&writer->json);
}

static void put_text_number(struct writer *writer, const char *text) {
    json_put_uint(&writer->json, NULL, strings_number(&writer->strings, text));
}

static void put_meta(struct writer *writer) {
    enum { NS_PER_MS = 1000000 };
    const struct export *export = writer->export;
    struct json *json = &writer->json;
    char text[FRAME_TITLE_BYTES], command[FRAME_TITLE_BYTES];
    json_open_object(json, "meta");
    json_put_uint(json, "version", GECKO_VERSION);
    json_put_uint(json, "preprocessedProfileVersion", PROCESSED_VERSION);
    json_put_uint(json, "interval", 1);
    json_put_uint(json, "startTime", export->profile->recording->header.start_unix_ns / NS_PER_MS);
    json_put_uint(json, "processType", 0);
    json_put_string(json, "product", export->program);
    snprintf(text, sizeof text, "cairn %s", export->tool_version);
    json_put_string(json, "importedFrom", text);
    text_escape(command, sizeof command, export->command);
    json_put_string(json, "arguments", command);
    json_put_uint(json, "stackwalk", 1);
    json_put_bool(json, "symbolicated", true);
    json_put_bool(json, "usesOnlyOneStackType", true);
    json_put_bool(json, "doesNotUseFrameImplementation", true);
    json_put_bool(json, "sourceCodeIsNotOnSearchfox", true);
    json_open_array(json, "categories");
    json_open_object(json, NULL);
    json_put_string(json, "name", "Other");
    json_put_string(json, "color", "grey");
    json_open_array(json, "subcategories");
    json_put_string(json, NULL, "Other");
    json_close(json);
    json_close(json);
    json_close(json);
    json_open_array(json, "markerSchema");
    json_close(json);
    json_open_array(json, "extra");
    json_open_object(json, NULL);
    json_put_string(json, "label", "Recording");
    json_open_array(json, "entries");
    json_open_object(json, NULL);
    json_put_string(json, "label", "Trust");
    json_put_string(json, "format", "string");
    json_put_string(json, "value", export->trust);
    json_close(json);
    json_close(json);
    json_close(json);
    json_close(json);
    json_close(json);
}

static void put_libraries(struct writer *writer) {
    const struct module_map *map = &writer->export->profile->modules;
    struct json *json = &writer->json;
    json_open_array(json, "libs");
    for (size_t i = 0; i < map->count; i++) {
        char build_id[MODULE_BUILD_ID_TEXT];
        const char *path = map->modules[i].path, *name = text_base_name(path);
        module_build_id_text(&map->modules[i], build_id);
        json_open_object(json, NULL);
        json_put_string(json, "arch", "");
        json_put_string(json, "name", name);
        json_put_string(json, "path", path);
        json_put_string(json, "debugName", name);
        json_put_string(json, "debugPath", path);
        json_put_string(json, "breakpadId", "");
        json_put_string(json, "codeId", *build_id ? build_id : NULL);
        json_close(json);
    }
    json_close(json);
}

// Its number among the libraries, or -1.
static int64_t library_of(const struct writer *writer, const struct frame *frame) {
    const struct module_map *map = &writer->export->profile->modules;
    for (size_t i = 0; frame->module && i < map->count; i++)
        if (map->modules[i].path == frame->module || !strcmp(map->modules[i].path, frame->module))
            return (int64_t)i;
    return -1;
}

// The number of a stack: the root is none.
static void put_node(struct writer *writer, uint32_t node) {
    if (node == TREE_ROOT)
        json_put_null(&writer->json, NULL);
    else
        json_put_uint(&writer->json, NULL, node - 1);
}

static void put_stack_table(struct writer *writer) {
    const struct tree_node *nodes = writer->tree.nodes.items;
    struct json *json = &writer->json;
    size_t count = writer->tree.nodes.count - 1;
    json_open_object(json, "stackTable");
    json_open_array(json, "frame");
    for (size_t i = 1; i <= count; i++) json_put_uint(json, NULL, nodes[i].place);
    json_close(json);
    json_open_array(json, "prefix");
    for (size_t i = 1; i <= count; i++) put_node(writer, nodes[i].parent);
    json_close(json);
    put_column(writer, "category", count, "0");
    put_column(writer, "subcategory", count, "0");
    json_put_uint(json, "length", count);
    json_close(json);
}

static void put_frame_table(struct writer *writer) {
    struct json *json = &writer->json;
    size_t count = writer->frames.frames.count;
    json_open_object(json, "frameTable");
    json_open_array(json, "address");
    for (size_t i = 0; i < count; i++) {
        const struct frame *frame = writer->frames.frames.items[i];
        bool has_address = library_of(writer, frame) >= 0 && frame->offset < INT64_MAX;
        json_put_int(json, NULL, has_address ? (int64_t)frame->offset : -1);
    }
    json_close(json);
    json_open_array(json, "func");
    for (size_t i = 0; i < count; i++) json_put_uint(json, NULL, writer->function_of[i]);
    json_close(json);
    json_open_array(json, "line");
    for (size_t i = 0; i < count; i++) {
        if (writer->frames.frames.items[i]->line)
            json_put_uint(json, NULL, writer->frames.frames.items[i]->line);
        else
            json_put_null(json, NULL);
    }
    json_close(json);
    put_column(writer, "inlineDepth", count, "0");
    put_column(writer, "category", count, "0");
    put_column(writer, "subcategory", count, "0");
    put_column(writer, "nativeSymbol", count, "null");
    put_column(writer, "innerWindowID", count, "null");
    put_column(writer, "implementation", count, "null");
    put_column(writer, "column", count, "null");
    json_put_uint(json, "length", count);
    json_close(json);
}

// Resource i is library i.
static void put_function_table(struct writer *writer) {
    struct json *json = &writer->json;
    size_t count = writer->functions.count;
    char title[FRAME_TITLE_BYTES];
    json_open_object(json, "funcTable");
    json_open_array(json, "name");
    for (size_t i = 0; i < count; i++) {
        frame_title(writer->functions.items[i], title, sizeof title);
        put_text_number(writer, title);
    }
    json_close(json);
    json_open_array(json, "resource");
    for (size_t i = 0; i < count; i++)
        json_put_int(json, NULL, library_of(writer, writer->functions.items[i]));
    json_close(json);
    json_open_array(json, "fileName");
    for (size_t i = 0; i < count; i++) {
        if (writer->functions.items[i]->file)
            put_text_number(writer, writer->functions.items[i]->file);
        else
            json_put_null(json, NULL);
    }
    json_close(json);
    put_column(writer, "isJS", count, "false");
    put_column(writer, "relevantForJS", count, "false");
    put_column(writer, "lineNumber", count, "null");
    put_column(writer, "columnNumber", count, "null");
    json_put_uint(json, "length", count);
    json_close(json);
}

static void put_resource_table(struct writer *writer) {
    const struct module_map *map = &writer->export->profile->modules;
    struct json *json = &writer->json;
    json_open_object(json, "resourceTable");
    json_open_array(json, "lib");
    for (size_t i = 0; i < map->count; i++) json_put_uint(json, NULL, i);
    json_close(json);
    json_open_array(json, "name");
    for (size_t i = 0; i < map->count; i++)
        put_text_number(writer, text_base_name(map->modules[i].path));
    json_close(json);
    put_column(writer, "host", map->count, "null");
    json_open_array(json, "type");
    for (size_t i = 0; i < map->count; i++) json_put_uint(json, NULL, RESOURCE_LIBRARY);
    json_close(json);
    json_put_uint(json, "length", map->count);
    json_close(json);
    json_open_object(json, "nativeSymbols");
    put_column(writer, "libIndex", 0, "");
    put_column(writer, "address", 0, "");
    put_column(writer, "name", 0, "");
    put_column(writer, "functionSize", 0, "");
    json_put_uint(json, "length", 0);
    json_close(json);
}

static uint64_t time_of(const struct writer *writer, const struct lifetime_event *event) {
    return writer->lifetimes.moments.list.items[event->moment].at_ns;
}

static void put_allocations(struct writer *writer) {
    const struct lifetime_event *events = writer->lifetimes.events.items;
    const struct lifetime_block *blocks = writer->lifetimes.blocks.items;
    struct json *json = &writer->json;
    size_t count = writer->lifetimes.events.count;
    json_open_object(json, "nativeAllocations");
    json_open_array(json, "time");
    for (size_t i = 0; i < count; i++) put_ms(writer, time_of(writer, &events[i]));
    json_close(json);
    json_open_array(json, "weight");
    for (size_t i = 0; i < count; i++) {
        int64_t bytes = blocks[events[i].block].bytes;
        json_put_int(json, NULL, events[i].is_free ? -bytes : bytes);
    }
    json_close(json);
    json_put_string(json, "weightType", "bytes");
    json_open_array(json, "stack");
    for (size_t i = 0; i < count; i++)
        put_node(writer, writer->stack_node[blocks[events[i].block].stack]);
    json_close(json);
    json_open_array(json, "memoryAddress");
    for (size_t i = 0; i < count; i++)
        json_put_uint(json, NULL, ((uint64_t)events[i].block + 1) * ADDRESS_STEP);
    json_close(json);
    json_open_array(json, "threadId");
    for (size_t i = 0; i < count; i++)
        json_put_uint(json, NULL, writer->export->profile->recording->header.pid);
    json_close(json);
    json_put_uint(json, "length", count);
    json_close(json);
}

// The moments, by their names.
static void put_markers(struct writer *writer) {
    struct json *json = &writer->json;
    size_t count = writer->lifetimes.moments.list.count;
    json_open_object(json, "markers");
    put_column(writer, "data", count, "null");
    json_open_array(json, "name");
    for (size_t i = 0; i < count; i++) {
        const struct moment *moment = &writer->lifetimes.moments.list.items[i];
        char name[CAIRN_LABEL_BYTES + 16];
        snprintf(name, sizeof name, "%s%s%s", moment->name, moment->label ? ": " : "",
                 moment->label ? moment->label : "");
        put_text_number(writer, name);
    }
    json_close(json);
    json_open_array(json, "startTime");
    for (size_t i = 0; i < count; i++)
        put_ms(writer, writer->lifetimes.moments.list.items[i].at_ns);
    json_close(json);
    put_column(writer, "endTime", count, "null");
    put_column(writer, "phase", count, "0");
    put_column(writer, "category", count, "0");
    json_put_uint(json, "length", count);
    json_close(json);
}

static void put_samples(struct writer *writer) {
    struct json *json = &writer->json;
    json_open_object(json, "samples");
    put_column(writer, "stack", 0, "");
    put_column(writer, "time", 0, "");
    json_put_null(json, "weight");
    json_put_string(json, "weightType", "samples");
    json_put_uint(json, "length", 0);
    json_close(json);
}

static void put_pid(struct writer *writer) {
    char pid[16];
    snprintf(pid, sizeof pid, "%u", writer->export->profile->recording->header.pid);
    json_put_string(&writer->json, "pid", pid);
}

static void put_thread(struct writer *writer) {
    const struct export *export = writer->export;
    struct json *json = &writer->json;
    json_open_object(json, NULL);
    json_put_string(json, "name", export->program);
    json_put_string(json, "processName", export->program);
    json_put_string(json, "processType", "default");
    put_pid(writer);
    json_put_uint(json, "tid", export->profile->recording->header.pid);
    json_put_bool(json, "isMainThread", true);
    json_put_uint(json, "processStartupTime", 0);
    json_put_null(json, "processShutdownTime");
    json_put_uint(json, "registerTime", 0);
    json_put_null(json, "unregisterTime");
    put_column(writer, "pausedRanges", 0, "");
    put_samples(writer);
    put_allocations(writer);
    put_markers(writer);
    put_stack_table(writer);
    put_frame_table(writer);
    put_function_table(writer);
    put_resource_table(writer);
    json_open_array(json, "stringArray");
    for (size_t i = 0; i < writer->strings.list.count; i++)
        json_put_string(json, NULL, writer->strings.list.items[i]);
    json_close(json);
    json_close(json);
}

// The live heap as what it changes by.
static void put_counter(struct writer *writer) {
    const struct recording *recording = writer->export->profile->recording;
    const uint64_t point_ns = recording->header.totals.point_ns;
    uint64_t at_ns, end_ns = recording_last_ns(recording);
    struct json *json = &writer->json;
    struct cairn_point point;
    int64_t before = 0;
    size_t count = 0;
    json_open_object(json, NULL);
    json_put_string(json, "name", "malloc");
    json_put_string(json, "category", "Memory");
    json_put_string(json, "description", "The live heap");
    put_pid(writer);
    json_put_uint(json, "mainThreadIndex", 0);
    json_open_object(json, "samples");
    json_open_array(json, "time");
    for (size_t i = 0; recording_point(recording, i, &point); i++)
        if (!__builtin_mul_overflow((uint64_t)i, point_ns, &at_ns) && at_ns <= end_ns &&
            point.is_used) {
            put_ms(writer, at_ns);
            count++;
        }
    json_close(json);
    json_open_array(json, "count");
    for (size_t i = 0, put = 0; put < count && recording_point(recording, i, &point); i++) {
        if (!point.is_used) continue;
        int64_t most = point.max_bytes < writer->export->profile->peak.bytes
                           ? point.max_bytes
                           : writer->export->profile->peak.bytes;
        if (most < 0) most = 0;
        json_put_int(json, NULL, most - before);
        before = most;
        put++;
    }
    json_close(json);
    json_put_uint(json, "length", count);
    json_close(json);
    json_close(json);
}

static void put_all(struct writer *writer) {
    struct json *json = &writer->json;
    json_open_object(json, NULL);
    put_meta(writer);
    put_libraries(writer);
    json_open_array(json, "counters");
    if (recording_count(writer->export->profile->recording, CAIRN_SECTION_POINTS))
        put_counter(writer);
    json_close(json);
    json_open_array(json, "threads");
    put_thread(writer);
    json_close(json);
    json_close(json);
}

bool export_firefox(FILE *out, const struct export *export, struct error *error) {
    struct writer writer = {.export = export};
    if (!frame_table_build(&writer.frames, export, FRAMES_PICTURE, error)) return false;
    strings_start(&writer.strings);
    json_start(&writer.json, out);
    bool is_ok = lifetimes_make(&writer.lifetimes, export, error);
    if (is_ok) {
        is_ok = make_tables(&writer, error);
        if (is_ok) put_all(&writer);
        lifetimes_free(&writer.lifetimes);
    }
    if (is_ok && writer.strings.has_failed) is_ok = no_memory(error);
    frame_table_free(&writer.frames);
    strings_free(&writer.strings);
    tree_free(&writer.tree);
    free(writer.stack_node);
    free(writer.function_of);
    array_free(&writer.functions);
    return is_ok;
}
