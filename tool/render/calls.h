// SPDX-License-Identifier: Apache-2.0
// A call tree by name: what many stacks have in common, added up. Unlike the profile's own tree its
// nodes are functions, or functions with lines where that is wanted, not addresses, and internal
// frames can be left out of it.
#ifndef TOOL_RENDER_CALLS_H
#define TOOL_RENDER_CALLS_H

#include "tool/render/frames.h"
#include "tool/render/terminal.h"

#define CALLS_ROOT 0u

struct call {
    const struct frame *frame;  // NULL: the root, or stacks that were not recorded
    uint32_t parent;
    uint32_t first_child, next_sibling;  // 0: none; in order of value after calls_build
    uint32_t child_count : 31;
    uint32_t has_more_lines : 1;  // calls from several lines of the function are added up
    int64_t value, blocks;        // of everything below, itself included: call_measured
    int64_t calls;                // allocations there, whatever is measured
};

struct calls {
    ARRAY(struct call) nodes;
    ARRAY(struct estimate) estimates;  // by node; none if all of it was counted
    bool is_in_blocks;                 // the values
    struct index_table table;          // of nodes that do not lie right behind their parents
    size_t hidden_count;               // internal frames left out, over all stacks
};

// False without memory.
bool calls_build(struct calls *calls, const struct profile *profile,
                 const struct frame_names *names, const struct view_options *view,
                 struct error *error);
// With how sure it is.
struct measured call_measured(const struct calls *calls, const struct call *call);
// The file of a call, with its line if that is one: "server.cc:18", "server.cc", "".
void call_location(const struct call *call, char *out, size_t size);
void calls_free(struct calls *calls);

#endif
