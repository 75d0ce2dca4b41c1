// SPDX-License-Identifier: Apache-2.0
// The call tree on a whole terminal: folded and unfolded by keys, searched, sorted by any measure,
// from the start inwards or from the allocating functions outwards, callers and callees of one
// function, the source beside it.
#ifndef TOOL_TUI_BROWSER_H
#define TOOL_TUI_BROWSER_H

#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// The terminal can show it: both ends are terminals that curses knows.
bool browser_is_possible(void);

// Returns when the user is done. False without memory, or if the terminal cannot be set up.
bool browser_run(const struct profile *profile, const struct frame_names *names,
                 const struct view_options *view, struct error *error);

#endif
