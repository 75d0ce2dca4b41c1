// SPDX-License-Identifier: Apache-2.0
#include "tool/export/frame_tree.h"

#include <stdlib.h>

static bool child_of(struct frame_tree *tree, uint32_t parent, uint32_t frame, uint32_t *child) {
    uint64_t hash = hash_mix(index_table_seed(), (uint64_t)parent << 32 | frame);
    struct index_probe probe = index_probe_start(&tree->table, hash);
    while (index_probe_next(&tree->table, &probe, child)) {
        const struct frame_node *node = &tree->nodes.items[*child];
        if (node->parent == parent && node->frame == frame) return true;
    }
    *child = (uint32_t)tree->nodes.count;
    struct frame_node *node = array_push(&tree->nodes);
    if (!node || !index_table_insert(&tree->table, hash, *child)) return false;
    struct frame_node *above = &tree->nodes.items[parent];
    *node = (struct frame_node){.frame = frame,
                                .parent = parent,
                                .depth = above->depth + 1,
                                .next_sibling = above->first_child};
    above->first_child = *child;
    above->child_count++;
    return true;
}

// A damaged recording can claim more than there are numbers.
static void add_value(struct frame_tree *tree, uint32_t node, int64_t value) {
    struct frame_node *sum = &tree->nodes.items[node];
    sum->value = figures_add(sum->value, value);
}

static bool add_stack(struct frame_tree *tree, const struct frame_table *frames, int64_t value,
                      bool is_inverted) {
    uint32_t node = FRAME_TREE_ROOT;
    size_t count = frames->stack.count;
    add_value(tree, node, value);
    for (size_t i = 0; i < count; i++) {
        uint32_t frame = frames->stack.items[is_inverted ? i : count - 1 - i];
        if (!child_of(tree, node, frame, &node)) return false;
        add_value(tree, node, value);
    }
    return true;
}

static int compare(const void *a, const void *b, void *context) {
    const struct frame_node *nodes = context;
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    int64_t x = nodes[first].value, y = nodes[second].value;
    if (x != y) return x < y ? 1 : -1;
    return (first > second) - (first < second);
}

// Puts a node's children into order; `scratch` has room for them.
static void sort_children(struct frame_tree *tree, uint32_t parent, uint32_t *scratch) {
    struct frame_node *nodes = tree->nodes.items;
    size_t count = 0;
    for (uint32_t at = nodes[parent].first_child; at; at = nodes[at].next_sibling)
        scratch[count++] = at;
    if (count < 2) return;
    qsort_r(scratch, count, sizeof *scratch, compare, nodes);
    uint32_t *link = &nodes[parent].first_child;
    for (size_t i = 0; i < count; i++) {
        *link = scratch[i];
        link = &nodes[scratch[i]].next_sibling;
    }
    *link = 0;
}

static bool build(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                  bool is_inverted) {
    const struct profile *profile = frames->export->profile;
    struct frame_node *root = array_push(&tree->nodes);
    if (!root) return false;
    *root = (struct frame_node){0};
    for (size_t i = 0; i < profile->stack_count; i++) {
        int64_t value = measure_stack(by, &profile->stacks[i]).value;
        if (value <= 0) continue;
        if (!frame_table_stack(frames, profile->stacks[i].node)) return false;
        if (!add_stack(tree, frames, value, is_inverted)) return false;
    }
    uint32_t *scratch = calloc(tree->nodes.count, sizeof *scratch);
    for (uint32_t i = 0; scratch && i < tree->nodes.count; i++) sort_children(tree, i, scratch);
    free(scratch);
    return scratch != NULL;
}

bool frame_tree_build(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      bool is_inverted, struct error *error) {
    *tree = (struct frame_tree){0};
    if (build(tree, frames, by, is_inverted)) return true;
    frame_tree_free(tree);
    return error_set(error, "no memory for the tree of frames");
}

void frame_tree_free(struct frame_tree *tree) {
    array_free(&tree->nodes);
    index_table_free(&tree->table);
}
