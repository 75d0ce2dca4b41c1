// SPDX-License-Identifier: Apache-2.0
// Stacks whose live bytes rise from snapshot to snapshot: how fast, how steadily, how they went,
// and from which generation the blocks are that still live.
#ifndef TOOL_RENDER_GROWTH_H
#define TOOL_RENDER_GROWTH_H

#include "tool/base/json.h"
#include "tool/model/growth.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Snapshots that are looked at: more would make a slow report, and no better line.
#define GROWTH_SNAPSHOTS_MAX 128

// "grew 0.10 s to 2.00 s, flat since", of a stack that has stalled.
#define GROWTH_SPAN_BYTES 80
void growth_span_text(const struct growth_stack *stack, char span[GROWTH_SPAN_BYTES]);

#endif
