// SPDX-License-Identifier: Apache-2.0
// DHAT's files (version 2, heap mode): JSON with a table of frames and program points that refer to
// it, innermost first. The Rust crate dhat writes the same with the mode "rust-heap".
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tool/import/import.h"

enum { VERSION = 2, DEPTH_MAX = 65536 };

struct reader {
    struct imported *imported;
    struct error *error;
    json_t *frames;    // texts
    uint32_t *places;  // by frame, plus 1
    uint32_t *stack;
};

static bool number_of(struct reader *reader, json_t *point, size_t index, const char *key,
                      int64_t *number) {
    json_t *value = json_object_get(point, key);
    *number = json_integer_value(value);
    if (json_is_integer(value) && *number >= 0) return true;
    return error_set(reader->error, "dhat: program point %zu: \"%s\" is no count", index, key);
}

static bool read_values(struct reader *reader, json_t *point, size_t index,
                        struct import_values *values) {
    return number_of(reader, point, index, "tb", &values->allocated_bytes) &&
           number_of(reader, point, index, "tbk", &values->calls) &&
           number_of(reader, point, index, "gb", &values->peak_bytes) &&
           number_of(reader, point, index, "gbk", &values->peak_blocks) &&
           number_of(reader, point, index, "eb", &values->exit_bytes) &&
           number_of(reader, point, index, "ebk", &values->exit_blocks);
}

static bool place_of(struct reader *reader, size_t frame, uint32_t *place) {
    uint32_t *known = &reader->places[frame];
    if (!*known) {
        const char *text = json_string_value(json_array_get(reader->frames, frame));
        *known = import_place_of_text(reader->imported, text ? text : "?") + 1;
    }
    *place = *known - 1;
    return *known || import_no_memory(reader->error);
}

static bool read_point(struct reader *reader, json_t *point, size_t index) {
    struct import_values values = {0};
    json_t *frames = json_object_get(point, "fs");
    size_t count = json_array_size(frames);
    if (!read_values(reader, point, index, &values)) return false;
    if (!json_is_array(frames) || count > DEPTH_MAX)
        return error_set(reader->error, "dhat: program point %zu: no frames", index);
    for (size_t i = 0; i < count; i++) {
        json_t *frame = json_array_get(frames, i);
        json_int_t number = json_integer_value(frame);
        if (!json_is_integer(frame) || number < 0 ||
            (size_t)number >= json_array_size(reader->frames))
            return error_set(reader->error, "dhat: program point %zu: frame %zu is not in ftbl",
                             index, i);
        if (!place_of(reader, (size_t)number, &reader->stack[i])) return false;
    }
    return import_stack(reader->imported, reader->stack, count, &values) ||
           import_no_memory(reader->error);
}

static bool check_kind(json_t *root, struct error *error) {
    json_int_t version = json_integer_value(json_object_get(root, "dhatFileVersion"));
    const char *mode = json_string_value(json_object_get(root, "mode"));
    if (version != VERSION)
        return error_set(error, "dhat: file version %" JSON_INTEGER_FORMAT ", not %d", version,
                         VERSION);
    if (!mode || (strcmp(mode, "heap") != 0 && strcmp(mode, "rust-heap") != 0))
        return error_set(error, "dhat: its mode is \"%s\", not heap or rust-heap",
                         mode ? mode : "");
    if (json_is_true(json_object_get(root, "bklt"))) return true;
    return error_set(error, "dhat: it has no lifetimes of blocks (bklt)");
}

static bool read_root(struct reader *reader, json_t *root) {
    struct imported *imported = reader->imported;
    json_t *points = json_object_get(root, "pps"), *command = json_object_get(root, "cmd");
    if (!check_kind(root, reader->error)) return false;
    reader->frames = json_object_get(root, "ftbl");
    if (!json_is_array(points) || !json_is_array(reader->frames))
        return error_set(reader->error, "dhat: pps or ftbl is missing");
    reader->places = calloc(json_array_size(reader->frames) + 1, sizeof *reader->places);
    reader->stack = calloc(DEPTH_MAX, sizeof *reader->stack);
    if (!reader->places || !reader->stack) return import_no_memory(reader->error);
    snprintf(imported->command, sizeof imported->command, "%s",
             json_is_string(command) ? json_string_value(command) : "");
    imported->pid = (uint32_t)json_integer_value(json_object_get(root, "pid"));
    for (size_t i = 0; i < json_array_size(points); i++)
        if (!read_point(reader, json_array_get(points, i), i)) return false;
    return true;
}

bool import_is_dhat(const char *head, size_t size) {
    return import_begins_json(head, size, "{\"dhatFileVersion\"");
}

bool import_dhat(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.imported = imported, .error = error};
    json_error_t problem;
    json_t *root = json_loadf(in, 0, &problem);
    bool is_ok = root ? read_root(&reader, root)
                      : error_set(error, "dhat: line %d: %s", problem.line, problem.text);
    json_decref(root);
    free(reader.places);
    free(reader.stack);
    snprintf(imported->lacks, sizeof imported->lacks, "times, threads, the heap over time");
    return is_ok;
}
