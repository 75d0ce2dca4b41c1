// SPDX-License-Identifier: Apache-2.0
// All stacks as one tree of frames, by one measure: from the outermost frame inwards, or inverted
// from the allocating functions outwards.
#ifndef TOOL_EXPORT_FRAME_TREE_H
#define TOOL_EXPORT_FRAME_TREE_H

#include "tool/export/frame_table.h"

#define FRAME_TREE_ROOT 0u

struct frame_node {
    uint32_t frame;  // number in the table; without meaning in the root
    uint32_t parent, depth;
    uint32_t first_child, next_sibling;  // 0: none; the largest child comes first
    uint32_t child_count;
    int64_t value;        // of everything below, itself included
    struct measured sum;  // the same, and how sure it is
};

struct frame_tree {
    ARRAY(struct frame_node) nodes;
    struct index_table table;
};

// Stacks with a value above zero. False without memory.
bool frame_tree_build(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      struct error *error);
// The same from the allocating functions outwards. Inverted stacks share little, so nodes below
// 1/`least_share` of the whole have no children: what is too small to be shown takes no memory.
bool frame_tree_build_inverted(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                               unsigned least_share, struct error *error);
void frame_tree_free(struct frame_tree *tree);

#endif
