// SPDX-License-Identifier: Apache-2.0
// Draws the screen of `cairn top` as its state says.
#ifndef TOOL_TUI_TOP_DRAW_H
#define TOOL_TUI_TOP_DRAW_H

#include "tool/tui/top_state.h"

// Sets top->list_lines, and top->is_failed without memory.
void top_draw(struct top *top);

#endif
