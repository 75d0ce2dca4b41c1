// SPDX-License-Identifier: Apache-2.0
// The way by which most memory came: the functions, from the outermost inwards, that most of the
// peak heap was allocated through, and where it parts.
//
// The tree of stacks is descended as long as one function has a share that stands out. Nodes of
// one function belong together, whatever line of it calls; internal frames are passed through.
#ifndef TOOL_RENDER_WAY_H
#define TOOL_RENDER_WAY_H

#include "tool/answer/claims.h"
#include "tool/model/measure.h"
#include "tool/render/frames.h"

// Nodes that names are needed of.
struct way_nodes {
    ARRAY(uint32_t) nodes;
};
bool way_nodes_find(struct way_nodes *nodes, const struct profile *profile);  // false: no memory
void way_nodes_free(struct way_nodes *nodes);

// The measure that shares are of, and its noun. False: samples of it say enough.
enum measure way_measure(const struct profile *profile);
const char *way_noun(const struct profile *profile);
bool way_lacks_samples(const struct profile *profile);

// CLAIM_WAY, or CLAIM_WAYS where it parts at once. `has_any` is false if nothing is known of it: no
// stacks, no names, samples that say too little. False without memory.
bool claim_of_way(struct claim *claim, const struct profile *profile,
                  const struct frame_names *names, bool *has_any);

// CLAIM_LARGEST, the function with most, or CLAIM_LARGEST_UNKNOWN, which says why that is not
// known. `has_any` is false if there is nothing. False without memory.
bool claim_of_largest(struct claim *claim, const struct profile *profile,
                      const struct frame_names *names, bool *has_any);

#endif
