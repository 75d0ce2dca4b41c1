// SPDX-License-Identifier: Apache-2.0
// Who frees whose blocks: a matrix of threads by name, those that allocated down, those that freed
// across.
#ifndef TOOL_RENDER_FREED_BY_H
#define TOOL_RENDER_FREED_BY_H

#include "tool/answer/answer.h"
#include "tool/model/measure.h"
#include "tool/model/shape.h"
#include "tool/render/stacks.h"

// Makes the matrix for a screen of so many columns. Threads of one name are one: slots that threads
// of several names shared are named by all of them. It has neither rows nor notes unless a thread
// freed a block of another one. False without memory; it is to be closed in any case.
bool freed_by_table(struct answer *answer, const struct profile *profile,
                    const struct view_options *view, size_t columns, struct error *error);

// The most that goes from threads of one name to those of another: "producer", "consumer", bytes,
// and of how many. Destructors of the main thread hand nothing over: what it can have freed after
// the others had ended, or as the program ended, is left out; threads of one name
// are told apart. False if there is none.
struct freed_by_flow {
    char from[64], to[64];
    uint64_t bytes, of_bytes;  // of all that `from` allocated and somebody freed
    uint64_t blocks;
    uint64_t late_bytes;    // that were left out
    struct measured freed;  // all the bytes, and how sure they are
};
bool freed_by_largest(const struct profile *profile, struct freed_by_flow *flow);

// Which stacks freed the blocks of which (cairn run --free-stacks): stacks as usual, each with the
// places that freed its blocks.

// Whether it was recorded.
bool free_stacks_has_any(const struct profile *profile);
// The same with an error that says why not; it is known of one process.
bool free_stacks_are_known(const struct profile *profile, struct error *error);

struct free_stacks {
    const struct frame_names *names;
    struct shape_free_stack *list;
    size_t count;
    bool is_one;       // a single stack is shown
    bool has_trouble;  // there was no memory
};
// The lines about a stack; `context` is a struct free_stacks. A list of one stack spells out the
// frames of those that freed its blocks.
stacks_note_fn free_stacks_note;

#endif
