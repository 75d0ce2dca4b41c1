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
static void add_value(struct frame_tree *tree, uint32_t node, struct measured value) {
    struct frame_node *sum = &tree->nodes.items[node];
    sum->value = figures_add(sum->value, value.value);
    measured_add(&sum->sum, value);
}

static bool add_stack(struct frame_tree *tree, const struct frame_table *frames,
                      struct measured value) {
    uint32_t node = FRAME_TREE_ROOT;
    add_value(tree, node, value);
    for (size_t i = frames->stack.count; i-- > 0;) {
        if (!child_of(tree, node, frames->stack.items[i], &node)) return false;
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

static bool add_root(struct frame_tree *tree) {
    struct frame_node *root = array_push(&tree->nodes);
    if (root) *root = (struct frame_node){0};
    return root != NULL;
}

static bool sort_all(struct frame_tree *tree) {
    uint32_t *scratch = calloc(tree->nodes.count, sizeof *scratch);
    for (uint32_t i = 0; scratch && i < tree->nodes.count; i++) sort_children(tree, i, scratch);
    free(scratch);
    return scratch != NULL;
}

static bool add_stacks(struct frame_tree *tree, struct frame_table *frames, enum measure by) {
    const struct profile *profile = frames->export->profile;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct measured value = measure_stack(by, &profile->stacks[i]);
        if (value.value <= 0) continue;
        if (!frame_table_stack(frames, profile->stacks[i].node)) return false;
        if (!add_stack(tree, frames, value)) return false;
    }
    return true;
}

// A stack that is followed outwards, and how far it has come.
struct walker {
    uint32_t stack, node;
};

// One frame further for each walker; those whose node is too small, or that are at their end, stop.
static bool add_level(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      size_t level, struct walker *walkers, size_t *count) {
    const struct profile *profile = frames->export->profile;
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        struct walker walker = walkers[i];
        const struct stack *stack = &profile->stacks[walker.stack];
        if (!frame_table_stack(frames, stack->node)) return false;
        if (level >= frames->stack.count) continue;
        if (!child_of(tree, walker.node, frames->stack.items[level], &walker.node)) return false;
        add_value(tree, walker.node, measure_stack(by, stack));
        walkers[kept++] = walker;
    }
    *count = kept;
    return true;
}

static size_t drop_small(const struct frame_tree *tree, struct walker *walkers, size_t count,
                         int64_t least) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (tree->nodes.items[walkers[i].node].value >= least) walkers[kept++] = walkers[i];
    return kept;
}

static bool add_inverted(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                         unsigned least_share) {
    const struct profile *profile = frames->export->profile;
    struct walker *walkers = calloc(profile->stack_count + 1, sizeof *walkers);
    size_t count = 0;
    bool is_ok = walkers != NULL;
    for (uint32_t i = 0; is_ok && i < profile->stack_count; i++) {
        struct measured value = measure_stack(by, &profile->stacks[i]);
        if (value.value <= 0) continue;
        walkers[count++] = (struct walker){.stack = i, .node = FRAME_TREE_ROOT};
        add_value(tree, FRAME_TREE_ROOT, value);
    }
    for (size_t level = 0; is_ok && count; level++) {
        is_ok = add_level(tree, frames, by, level, walkers, &count);
        int64_t least = tree->nodes.items[FRAME_TREE_ROOT].value / least_share;
        if (is_ok) count = drop_small(tree, walkers, count, least);
    }
    free(walkers);
    return is_ok;
}

static bool finish(struct frame_tree *tree, bool is_built, struct error *error) {
    if (is_built && sort_all(tree)) return true;
    frame_tree_free(tree);
    return error_set(error, "no memory for the tree of frames");
}

bool frame_tree_build(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      struct error *error) {
    *tree = (struct frame_tree){0};
    return finish(tree, add_root(tree) && add_stacks(tree, frames, by), error);
}

bool frame_tree_build_inverted(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                               unsigned least_share, struct error *error) {
    *tree = (struct frame_tree){0};
    bool is_built = add_root(tree) && add_inverted(tree, frames, by, least_share);
    return finish(tree, is_built, error);
}

void frame_tree_free(struct frame_tree *tree) {
    array_free(&tree->nodes);
    index_table_free(&tree->table);
}
