// SPDX-License-Identifier: Apache-2.0
// A call tree by name: what many stacks have in common, added up. Unlike the profile's own tree its
// nodes are functions with lines, not addresses, and plumbing can be left out of it.
#ifndef TOOL_RENDER_CALLS_H
#define TOOL_RENDER_CALLS_H

#include "tool/render/frames.h"
#include "tool/render/options.h"

#define CALLS_ROOT 0u

struct call {
    const struct frame *frame;  // NULL: the root, or stacks that were not recorded
    uint32_t parent;
    uint32_t first_child, next_sibling;  // 0: none; in order of value after calls_build
    uint32_t child_count;
    struct measured measured;  // of everything below, itself included
    int64_t calls;             // allocations there, whatever is measured
};

struct calls {
    ARRAY(struct call) nodes;
    struct index_table table;
    size_t hidden_count;  // plumbing frames left out, over all stacks
};

// False without memory.
bool calls_build(struct calls *calls, const struct profile *profile,
                 const struct frame_names *names, const struct view_options *view,
                 struct error *error);
void calls_free(struct calls *calls);

#endif
