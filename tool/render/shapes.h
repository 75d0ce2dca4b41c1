// SPDX-License-Identifier: Apache-2.0
// What the blocks of each stack were like: stacks as usual, with a line or two about how long their
// blocks lived, which sizes they had, or how they were reallocated.
#ifndef TOOL_RENDER_SHAPES_H
#define TOOL_RENDER_SHAPES_H

#include "tool/model/shape.h"
#include "tool/render/frames.h"
#include "tool/render/options.h"
#include "tool/render/terminal.h"

enum shapes_kind { SHAPES_TEMPORARY, SHAPES_SIZES, SHAPES_AGES };

// `short_ns`: ages: what counts as short-lived; 0: nothing was said. False without memory.
bool shapes_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  enum shapes_kind kind, uint64_t short_ns, struct error *error);

#endif
