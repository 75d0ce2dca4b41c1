// SPDX-License-Identifier: Apache-2.0
// The heap over time, as columns of blocks with an axis at each side.
//
// What the largest stacks held over time, as a stacked area of letters: from the snapshots that the
// recording kept.
#ifndef TOOL_RENDER_CHART_H
#define TOOL_RENDER_CHART_H

#include "tool/answer/answer.h"
#include "tool/model/combined.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Solid: the heap was not below it; light: it may have been as high as that. A line: resident
// memory, where somebody looked. The peak and marks are marked, and below are the largest stacks
// over time. The picture of an answer of timeline_answer. False without memory.
bool chart_draw(const struct terminal *terminal, const struct answer *answer, struct error *error);

// Makes rows of its intervals, without resident memory and stacks, which a screen draws. False with
// an error: of a sum of processes, of a heap without points, and without memory.
bool timeline_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error);

// The heaps of several processes together, on one clock. False without memory.
bool chart_print_combined(const struct terminal *terminal, struct combined *combined,
                          const struct view_options *view, struct error *error);

#endif
