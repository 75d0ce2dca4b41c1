// SPDX-License-Identifier: Apache-2.0
// Ranked stacks as answers: their values, and what a view knows of them beside these, as parts of a
// row. Lines of the screen about them are made in shapes.h, freed_by.h and mappings.h.
//
// Functions return false, with an error, of what the recording does not have, and without memory.
#ifndef TOOL_RENDER_STACK_ANSWERS_H
#define TOOL_RENDER_STACK_ANSWERS_H

#include "tool/answer/answer.h"
#include "tool/render/shapes.h"

bool stacks_answer(struct answer *answer, const struct profile *profile,
                   const struct frame_names *names, const struct view_options *view,
                   struct error *error);

// Reallocations, sizes or ages of the blocks of each stack. `short_ns`: ages: what counts as
// short-lived; 0: nothing was said.
bool shapes_answer(struct answer *answer, const struct profile *profile,
                   const struct frame_names *names, const struct view_options *view,
                   enum shapes_kind kind, uint64_t short_ns, struct error *error);

// The stacks that freed the blocks of each.
bool frees_answer(struct answer *answer, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error);

// Stacks that map memory themselves.
bool mappings_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error);

// Stacks whose live bytes rise.
bool growth_answer(struct answer *answer, const struct profile *profile,
                   const struct frame_names *names, const struct view_options *view,
                   struct error *error);

#endif
