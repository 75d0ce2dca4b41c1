// SPDX-License-Identifier: Apache-2.0
// V8's sampled heap profiles (`node --heap-prof`, Chrome's .heapprofile): JSON, a tree of
// functions, each with the bytes of its live objects, and a list of the samples with the same bytes
// and their nodes, from which the number of blocks comes. V8 has scaled the bytes up already.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/import.h"

enum { DEPTH_MAX = 4096 };

struct v8_node {
    uint32_t node;  // of the tree
    int64_t bytes, blocks;
};

struct reader {
    struct imported *imported;
    struct error *error;
    ARRAY(struct v8_node) nodes;
    ARRAY(uint64_t) ids;
    struct index_table table;  // of ids
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "v8: %s", what);
}

static struct v8_node *find_node(struct reader *reader, uint64_t id) {
    struct index_probe probe = index_probe_start(&reader->table, hash_mix(index_table_seed(), id));
    for (uint32_t index; index_probe_next(&reader->table, &probe, &index);)
        if (reader->ids.items && reader->ids.items[index] == id) return &reader->nodes.items[index];
    return NULL;
}

// "malloc (prog.c:12)" is how places are told apart; V8 counts lines from 0.
static uint32_t place_of(struct reader *reader, json_t *frame) {
    const char *name = json_string_value(json_object_get(frame, "functionName"));
    const char *url = json_string_value(json_object_get(frame, "url"));
    json_int_t line = json_integer_value(json_object_get(frame, "lineNumber")) + 1;
    char *text = NULL;
    if (!name || !*name) name = "(anonymous)";
    if (url && !strncmp(url, "file://", 7)) url += 7;
    int length = url && *url ? asprintf(&text, "%s (%s:%d)", name, url,
                                        line > 0 && line < INT32_MAX ? (int)line : 0)
                             : asprintf(&text, "%s", name);
    if (length < 0) return IMPORT_NONE;
    uint32_t place = import_place_of_text(reader->imported, text);
    free(text);
    return place;
}

static bool add_node(struct reader *reader, json_t *node, uint32_t tree_node) {
    json_int_t bytes = json_integer_value(json_object_get(node, "selfSize"));
    uint64_t id = (uint64_t)json_integer_value(json_object_get(node, "id"));
    if (!json_is_integer(json_object_get(node, "selfSize")) || bytes < 0)
        return bad(reader, "a node without its selfSize");
    struct v8_node *slot = array_push(&reader->nodes);
    uint64_t *id_slot = array_push(&reader->ids);
    if (!slot || !id_slot ||
        !index_table_insert(&reader->table, hash_mix(index_table_seed(), id),
                            (uint32_t)reader->nodes.count - 1))
        return import_no_memory(reader->error);
    *slot = (struct v8_node){.node = tree_node, .bytes = bytes};
    *id_slot = id;
    return true;
}

static bool read_node(struct reader *reader, json_t *node, uint32_t parent, unsigned depth) {
    json_t *frame = json_object_get(node, "callFrame"),
           *children = json_object_get(node, "children");
    if (depth > DEPTH_MAX) return bad(reader, "the tree is too deep");
    if (!json_is_object(frame)) return bad(reader, "a node without its callFrame");
    uint32_t tree_node = parent, place = depth ? place_of(reader, frame) : 0;
    if (place == IMPORT_NONE ||
        (depth && !tree_child(&reader->imported->tree, parent, place, &tree_node)))
        return import_no_memory(reader->error);
    if (!add_node(reader, node, tree_node)) return false;
    for (size_t i = 0; i < json_array_size(children); i++)
        if (!read_node(reader, json_array_get(children, i), tree_node, depth + 1)) return false;
    return true;
}

// How many objects a sample stands for is not in the file: it counts as one block. V8 also lists
// samples of functions that are not in the tree any more; the tree's bytes are what it says of the
// heap.
static void count_samples(struct reader *reader, json_t *samples) {
    for (size_t i = 0; i < json_array_size(samples); i++) {
        json_t *id = json_object_get(json_array_get(samples, i), "nodeId");
        struct v8_node *node =
            json_is_integer(id) ? find_node(reader, (uint64_t)json_integer_value(id)) : NULL;
        if (node) node->blocks++;
    }
}

static bool add_stacks(struct reader *reader) {
    for (size_t i = 0; i < reader->nodes.count; i++) {
        const struct v8_node *node = &reader->nodes.items[i];
        int64_t blocks = node->bytes && !node->blocks ? 1 : node->blocks;
        const struct import_values values = {.calls = blocks,
                                             .allocated_bytes = node->bytes,
                                             .exit_blocks = blocks,
                                             .exit_bytes = node->bytes,
                                             .peak_blocks = blocks,
                                             .peak_bytes = node->bytes};
        if (node->bytes && !import_node(reader->imported, node->node, &values))
            return import_no_memory(reader->error);
    }
    return true;
}

bool import_is_v8(const char *head, size_t size) {
    return import_begins_json(head, size, "{\"head\":{\"callFrame\":");
}

bool import_v8(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.imported = imported, .error = error};
    json_error_t problem;
    json_t *root = json_loadf(in, 0, &problem), *head = json_object_get(root, "head");
    bool is_ok = root ? json_is_object(head) || bad(&reader, "it has no \"head\"")
                      : error_set(error, "v8: line %d: %s", problem.line, problem.text);
    is_ok = is_ok && read_node(&reader, head, TREE_ROOT, 0);
    if (is_ok) count_samples(&reader, json_object_get(root, "samples"));
    is_ok = is_ok && add_stacks(&reader);
    json_decref(root);
    imported->is_partial = imported->has_no_calls = imported->has_no_blocks = true;
    snprintf(imported->command, sizeof imported->command, "node");
    snprintf(imported->lacks, sizeof imported->lacks,
             "the peak (what is in use counts as it), what was freed, objects (a sample counts as "
             "one), threads, the heap over time (sampled)");
    array_free(&reader.nodes);
    array_free(&reader.ids);
    index_table_free(&reader.table);
    return is_ok;
}
