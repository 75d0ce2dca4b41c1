// SPDX-License-Identifier: Apache-2.0
// What the blocks of each stack were like: stacks as usual, with a line or two about how long their
// blocks lived, which sizes they had, or how they were reallocated.
#ifndef TOOL_RENDER_SHAPES_H
#define TOOL_RENDER_SHAPES_H

#include "tool/answer/answer.h"
#include "tool/base/json.h"
#include "tool/model/shape.h"
#include "tool/render/stacks.h"

enum shapes_kind { SHAPES_TEMPORARY, SHAPES_SIZES, SHAPES_AGES };

// False, with the reason, of samples and sums of which they are not known.
bool shapes_are_known(const struct profile *profile, enum shapes_kind kind, struct error *error);
// The measure that stacks are ranked by where this one was asked for: of a short program no block
// was watched, and a file of heaptrack's has temporary ones.
enum measure shapes_measure(const struct profile *profile, enum measure by);

struct shapes {
    struct shape shape;
    uint64_t short_ns;  // ages: what counts as short-lived; 0: nothing was said
};
// The lines about a stack; their context is a struct shapes.
stacks_note_fn *shapes_note(const struct profile *profile, enum shapes_kind kind);
// Adds what is to be said below stacks that are ranked by that measure.
void shapes_explain(struct answer *answer, const struct profile *profile, enum shapes_kind kind,
                    enum measure by);

// What the blocks of a stack were like, as JSON (docs/reference/json.md).

// "sizes", "reallocs" and "ages" of one stack; those that were not recorded are left out.
void shape_json_put(struct json *json, const struct shape *shape, uint32_t stack_number);

// "freed_by": pairs of slots of threads. False without memory.
bool shape_json_put_freed_by(struct json *json, const struct profile *profile);

#endif
