// SPDX-License-Identifier: Apache-2.0
// Stacks as a prefix tree: a node is a frame together with everything outside of it, so equal
// stacks are the same node whatever thread or record they came from. Nodes only grow; a child's
// index is higher than its parent's.
//
// `jump` leads to some ancestor, so that one of any depth is found in a logarithmic number of
// steps (skew-binary jump pointers): a made-up file cannot cost depth times cells.
#ifndef TOOL_MODEL_TREE_H
#define TOOL_MODEL_TREE_H

#include "tool/base/array.h"
#include "tool/model/index_table.h"

#define TREE_ROOT 0u  // the empty stack

struct tree_node {
    uint32_t parent;
    uint32_t jump;
    uint32_t place;  // index in places; without meaning in the root
    uint32_t depth;  // frames from the outermost; 0 in the root
};

struct tree {
    ARRAY(struct tree_node) nodes;
    struct index_table table;
};

// False without memory.
bool tree_start(struct tree *tree);
void tree_free(struct tree *tree);

// The node of `place` called by `parent`, made if there is none yet; false without memory.
bool tree_child(struct tree *tree, uint32_t parent, uint32_t place, uint32_t *child);

// The node's ancestor of `depth`; the node itself if it is not deeper.
uint32_t tree_ancestor(const struct tree *tree, uint32_t node, uint32_t depth);

#endif
