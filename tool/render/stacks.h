// SPDX-License-Identifier: Apache-2.0
// The frames of a stack as lines.
#ifndef TOOL_RENDER_STACKS_H
#define TOOL_RENDER_STACKS_H

#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Frames of one stack as lines of text: "function  file:line", `depth` lines at most (0: all).
void stacks_print_frames(const struct terminal *terminal, const struct frame_list *frames,
                         uint32_t cut, size_t depth);

// Where lines about a stack begin.
#define STACKS_NOTE_INDENT 10

// What a view has to say of a stack beside its figures, above or below its frames: lines.
typedef void stacks_note_fn(const struct terminal *terminal, const struct profile *profile,
                            const struct stack *stack, const struct view_options *view,
                            void *context);

#endif
