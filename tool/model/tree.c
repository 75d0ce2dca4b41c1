// SPDX-License-Identifier: Apache-2.0
#include "tool/model/tree.h"

bool tree_start(struct tree *tree) {
    *tree = (struct tree){0};
    struct tree_node *root = array_push(&tree->nodes);
    if (!root) return false;
    *root = (struct tree_node){0};
    return true;
}

void tree_free(struct tree *tree) {
    array_free(&tree->nodes);
    index_table_free(&tree->table);
}

// Two jumps of equal length are joined into one of double length plus one.
static uint32_t jump_of_child(const struct tree *tree, uint32_t parent) {
    const struct tree_node *nodes = tree->nodes.items;
    uint32_t near = nodes[parent].jump, far = nodes[near].jump;
    bool are_equal =
        nodes[parent].depth - nodes[near].depth == nodes[near].depth - nodes[far].depth;
    return are_equal ? far : parent;
}

bool tree_child(struct tree *tree, uint32_t parent, uint32_t place, uint32_t *child) {
    uint64_t hash = hash_mix(index_table_seed(), (uint64_t)parent << 32 | place);
    struct index_probe probe = index_probe_start(&tree->table, hash);
    while (index_probe_next(&tree->table, &probe, child)) {
        const struct tree_node *node = &tree->nodes.items[*child];
        if (node->parent == parent && node->place == place) return true;
    }
    struct tree_node added = {.parent = parent,
                              .jump = jump_of_child(tree, parent),
                              .place = place,
                              .depth = tree->nodes.items[parent].depth + 1};
    *child = (uint32_t)tree->nodes.count;
    struct tree_node *node = *child < UINT32_MAX ? array_push(&tree->nodes) : NULL;
    if (!node) return false;
    *node = added;
    return index_table_insert(&tree->table, hash, *child);
}

uint32_t tree_ancestor(const struct tree *tree, uint32_t node, uint32_t depth) {
    const struct tree_node *nodes = tree->nodes.items;
    while (nodes[node].depth > depth) {
        uint32_t jump = nodes[node].jump;
        node = nodes[jump].depth >= depth ? jump : nodes[node].parent;
    }
    return node;
}
