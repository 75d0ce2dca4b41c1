// SPDX-License-Identifier: Apache-2.0
// Ranked stacks, each with its figures and its frames.
#ifndef TOOL_RENDER_STACKS_H
#define TOOL_RENDER_STACKS_H

#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Frames of one stack as lines of text: "function  file:line", `depth` lines at most (0: all).
void stacks_print_frames(const struct terminal *terminal, const struct frame_list *frames,
                         uint32_t cut, size_t depth);

// What a view has to say of a stack beside its figures: lines, each from STACKS_NOTE_INDENT on.
#define STACKS_NOTE_INDENT 10
typedef void stacks_note_fn(const struct terminal *terminal, const struct profile *profile,
                            const struct stack *stack, const struct view_options *view,
                            void *context);

struct stacks_notes {
    stacks_note_fn *before, *after;  // its frames; NULL: none
    void *context;
};

// False without memory.
bool stacks_print_noted(const struct terminal *terminal, const struct profile *profile,
                        const struct frame_names *names, const struct view_options *view,
                        const struct stacks_notes *notes, struct error *error);
bool stacks_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error);

#endif
