// SPDX-License-Identifier: Apache-2.0
// Massif's files: snapshots in time, some with a tree of callers whose children follow their
// parent, indented. The peak is the snapshot that is marked so, or else the largest one with a
// tree, or else the largest; the end is the last snapshot. Bytes of a snapshot without a tree are
// of a stack that is not known. Numbers of blocks and calls are not in it: each stack counts as
// one.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/import.h"
#include "tool/model/figures.h"

enum { DEPTH_MAX = 4096 };
static const uint64_t ns_per_ms = 1000000;

struct node {
    uint32_t tree_node;
    int64_t bytes;      // not yet given to children
    uint64_t children;  // still to come
};

struct snapshot {
    uint64_t time;
    int64_t bytes;
    bool is_peak, has_tree;
};

struct reader {
    FILE *in;
    struct imported *imported;
    struct error *error;
    char *line;
    size_t line_room, line_number;
    struct snapshot snapshot;
    ARRAY(struct import_stack) tree, peak, last;  // leaves: exclusive bytes in exit_bytes
    int64_t peak_bytes, last_bytes;
    int64_t most_bytes;  // of any snapshot
    uint64_t most_ns;
    bool has_marked_peak, is_in_ms, has_last_tree;
};

static bool bad(struct reader *reader, const char *what) {
    return error_set(reader->error, "massif: line %zu: %s", reader->line_number, what);
}

static bool next_line(struct reader *reader) {
    ssize_t length;
    do {
        length = getline(&reader->line, &reader->line_room, reader->in);
        reader->line_number++;
    } while (length > 0 && (*reader->line == '#' || *reader->line == '\n'));
    if (length <= 0) return false;
    reader->line[strcspn(reader->line, "\n")] = 0;
    return true;
}

static bool take(const char *line, const char *key, const char **value) {
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) return false;
    *value = line + length;
    return true;
}

static bool keep_leaf(struct reader *reader, const struct node *node) {
    if (node->bytes <= 0) return true;
    struct import_stack *leaf = array_push(&reader->tree);
    if (!leaf) return import_no_memory(reader->error);
    *leaf = (struct import_stack){.node = node->tree_node, .values = {.exit_bytes = node->bytes}};
    return true;
}

// Massif's tree goes from the allocating function outwards, ours from the outermost function
// inwards: a path is put into our tree when its end is known.
static bool add_path(struct reader *reader, const uint32_t *places, size_t count, int64_t bytes) {
    struct node node = {.bytes = bytes};
    for (size_t i = count; i-- > 0;)
        if (!tree_child(&reader->imported->tree, node.tree_node, places[i], &node.tree_node))
            return import_no_memory(reader->error);
    return keep_leaf(reader, &node);
}

static bool read_node(struct reader *reader, uint64_t *children, int64_t *bytes, uint32_t *place) {
    char *end, *line = reader->line + strspn(reader->line, " ");
    if (*line != 'n') return bad(reader, "a node of the tree is missing");
    *children = strtoull(line + 1, &end, 10);
    if (*end != ':') return bad(reader, "a node without its number of children");
    *bytes = strtoll(end + 1, &end, 10);
    if (*bytes < 0) return bad(reader, "a node with less than nothing");
    bool is_rest = strstr(end, " in ") && strstr(end, "below massif's threshold");
    *place = import_place_of_text(reader->imported,
                                  is_rest ? "[below massif's threshold]" : end + strspn(end, " "));
    return *place != IMPORT_NONE || import_no_memory(reader->error);
}

static bool read_tree(struct reader *reader) {
    static struct node stack[DEPTH_MAX];
    static uint32_t places[DEPTH_MAX];
    size_t depth = 0;
    reader->tree.count = 0;
    do {
        uint64_t children = 0;
        int64_t bytes = 0;
        uint32_t place = IMPORT_NONE;
        if (!next_line(reader)) return bad(reader, "the tree is cut off");
        if (!read_node(reader, &children, &bytes, &place)) return false;
        if (depth >= DEPTH_MAX) return bad(reader, "the tree is too deep");
        if (depth) {
            stack[depth - 1].children--;
            stack[depth - 1].bytes = figures_add(stack[depth - 1].bytes, -bytes);
            places[depth - 1] = place;
        }
        stack[depth++] = (struct node){.bytes = bytes, .children = children};
        // what a node has beyond its children, and all of a leaf, ends here
        while (depth && !stack[depth - 1].children) {
            depth--;
            if (!add_path(reader, places, depth, stack[depth].bytes)) return false;
        }
    } while (depth);
    return true;
}

static bool copy_tree(struct reader *reader, bool is_peak) {
    if (is_peak)
        reader->peak.count = 0;
    else
        reader->last.count = 0;
    for (size_t i = 0; i < reader->tree.count; i++) {
        struct import_stack *slot = is_peak ? array_push(&reader->peak) : array_push(&reader->last);
        if (!slot) return import_no_memory(reader->error);
        *slot = reader->tree.items[i];
    }
    return true;
}

static bool end_snapshot(struct reader *reader) {
    const struct snapshot *snapshot = &reader->snapshot;
    struct imported *imported = reader->imported;
    struct import_point *point = array_push(&imported->points);
    if (!point) return import_no_memory(reader->error);
    uint64_t at_ns = reader->is_in_ms && snapshot->time < UINT64_MAX / ns_per_ms
                         ? snapshot->time * ns_per_ms
                         : 0;
    *point = (struct import_point){at_ns, snapshot->bytes};
    imported->duration_ns = at_ns;
    reader->has_last_tree = snapshot->has_tree;
    reader->last_bytes = snapshot->bytes;
    if (snapshot->bytes > reader->most_bytes) {
        reader->most_bytes = snapshot->bytes;
        reader->most_ns = at_ns;
    }
    if (!snapshot->has_tree) return true;
    bool is_peak =
        snapshot->is_peak || (!reader->has_marked_peak && snapshot->bytes > reader->peak_bytes);
    if (is_peak) {
        reader->peak_bytes = snapshot->bytes;
        reader->has_marked_peak |= snapshot->is_peak;
        imported->peak_ns = at_ns;
        if (!copy_tree(reader, true)) return false;
    }
    return copy_tree(reader, false);
}

static bool read_snapshot(struct reader *reader) {
    const char *value;
    reader->snapshot = (struct snapshot){0};
    while (next_line(reader)) {
        struct snapshot *snapshot = &reader->snapshot;
        if (take(reader->line, "time=", &value)) snapshot->time = strtoull(value, NULL, 10);
        if (take(reader->line, "mem_heap_B=", &value)) snapshot->bytes = strtoll(value, NULL, 10);
        if (!take(reader->line, "heap_tree=", &value)) continue;
        snapshot->has_tree = strcmp(value, "empty") != 0;
        snapshot->is_peak = !strcmp(value, "peak");
        if (snapshot->bytes < 0) return bad(reader, "a snapshot with less than nothing");
        return (!snapshot->has_tree || read_tree(reader)) && end_snapshot(reader);
    }
    return bad(reader, "the snapshot is cut off");
}

static bool read_all(struct reader *reader) {
    struct imported *imported = reader->imported;
    const char *value;
    while (next_line(reader)) {
        if (take(reader->line, "cmd: ", &value))
            snprintf(imported->command, sizeof imported->command, "%s", value);
        if (take(reader->line, "time_unit: ", &value)) reader->is_in_ms = !strcmp(value, "ms");
        if (take(reader->line, "snapshot=", &value) && !read_snapshot(reader)) return false;
    }
    return imported->points.count || bad(reader, "there is no snapshot in it");
}

// Adds what snapshots without a tree hold, of no known stack.
static bool add_unknown(struct reader *reader) {
    int64_t peak_bytes = reader->peak.count ? 0 : reader->most_bytes;
    int64_t last_bytes = reader->has_last_tree ? 0 : reader->last_bytes;
    int64_t bytes = peak_bytes > last_bytes ? peak_bytes : last_bytes;
    const struct import_values values = {.calls = 1,
                                         .allocated_bytes = bytes,
                                         .peak_blocks = peak_bytes > 0,
                                         .peak_bytes = peak_bytes,
                                         .exit_blocks = last_bytes > 0,
                                         .exit_bytes = last_bytes};
    if (!reader->peak.count) reader->imported->peak_ns = reader->most_ns;
    return !bytes || import_node(reader->imported, TREE_ROOT, &values);
}

// Returns what the stacks of the peak's tree hold, by node; for free(). NULL without memory.
static int64_t *bytes_at_peak(const struct reader *reader) {
    const size_t count = reader->imported->tree.nodes.count;
    int64_t *held = calloc(count + 1, sizeof *held);
    for (size_t i = 0; held && i < reader->peak.count; i++) {
        const struct import_stack *leaf = &reader->peak.items[i];
        held[leaf->node] = figures_add(held[leaf->node], leaf->values.exit_bytes);
    }
    return held;
}

// Sizes of a file that was made up may be negative.
static int64_t more_than(int64_t bytes, int64_t before) {
    int64_t more;
    if (bytes <= before) return 0;
    return __builtin_sub_overflow(bytes, before, &more) ? INT64_MAX : more;
}

// A stack is one block, allocated once, since no more is known: of one that is in the tree of the
// peak and in that of the end only what is more at the end was allocated in between.
static bool add_stacks(struct reader *reader) {
    int64_t *held = bytes_at_peak(reader);
    bool is_ok = held && add_unknown(reader);
    for (size_t i = 0; is_ok && i < reader->peak.count; i++) {
        int64_t bytes = reader->peak.items[i].values.exit_bytes;
        const struct import_values values = {
            .calls = 1, .allocated_bytes = bytes, .peak_blocks = 1, .peak_bytes = bytes};
        is_ok = import_node(reader->imported, reader->peak.items[i].node, &values);
    }
    for (size_t i = 0; is_ok && reader->has_last_tree && i < reader->last.count; i++) {
        int64_t bytes = reader->last.items[i].values.exit_bytes;
        int64_t *before = &held[reader->last.items[i].node];
        const struct import_values values = {.calls = !*before,
                                             .allocated_bytes = more_than(bytes, *before),
                                             .exit_blocks = 1,
                                             .exit_bytes = bytes};
        is_ok = import_node(reader->imported, reader->last.items[i].node, &values);
        *before = bytes > *before ? bytes : *before;
    }
    free(held);
    return is_ok;
}

bool import_is_massif(const char *head, size_t size) {
    return size > 5 && !memcmp(head, "desc:", 5);
}

bool import_massif(FILE *in, struct imported *imported, struct error *error) {
    struct reader reader = {.in = in, .imported = imported, .error = error};
    bool is_ok = read_all(&reader);
    if (is_ok && !add_stacks(&reader)) is_ok = import_no_memory(error);
    imported->is_partial = imported->has_no_calls = imported->has_no_blocks = true;
    snprintf(
        imported->lacks, sizeof imported->lacks,
        "numbers of calls and blocks (a stack counts as one), what was allocated in between, the "
        "time after the last snapshot%s%s%s",
        reader.peak.count ? "" : ", who holds what at the peak",
        reader.has_last_tree ? "" : ", who holds what at the end",
        reader.is_in_ms ? "" : ", times");
    if (!reader.is_in_ms) imported->points.count = 0;
    free(reader.line);
    array_free(&reader.tree);
    array_free(&reader.peak);
    array_free(&reader.last);
    return is_ok;
}
