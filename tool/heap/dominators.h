// SPDX-License-Identifier: Apache-2.0
// Immediate dominators of a directed graph: the last node that every way from the root to a node
// passes. What a node dominates is what could not be reached without it.
//
// By the method of semidominators without their links in trees of balanced height ("semi-NCA"; L.
// Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", Princeton 2005, 2.4):
// as fast as the linear ones on graphs of real heaps. Nothing recurses: a list of 10^8 is a graph.
#ifndef TOOL_HEAP_DOMINATORS_H
#define TOOL_HEAP_DOMINATORS_H

#include <stdbool.h>
#include <stdint.h>

// Node 0 is the root. The edges of node n are targets[starts[n]] to targets[starts[n + 1] - 1]; an
// edge may be there twice, and may lead back to its node.
struct dominator_graph {
    uint32_t count;
    const uint32_t *starts;  // count + 1 of them
    const uint32_t *targets;
};

// Nodes in the order in which a depth-first search enters them, the root first: each one comes
// behind the one that dominates it.
struct dominators {
    uint32_t reached;   // nodes that a way leads to
    uint32_t *nodes;    // by place in that order
    uint32_t *parents;  // the place of the immediate dominator, by place; the root's is 0
};

// 24 bytes a node and 4 an edge while it works, and 4 for each node of the longest way that its
// search takes; 8 a node afterwards. False without memory.
bool dominators_find(const struct dominator_graph *graph, struct dominators *found);
void dominators_free(struct dominators *found);

#endif
