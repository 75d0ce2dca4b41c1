// SPDX-License-Identifier: Apache-2.0
// The heap over time, as columns of blocks with an axis at each side.
#ifndef TOOL_RENDER_CHART_H
#define TOOL_RENDER_CHART_H

#include "tool/model/profile.h"
#include "tool/render/options.h"
#include "tool/render/terminal.h"

// Solid: the heap was not below it; light: it may have been as high as that. The peak is marked.
// False without memory.
bool chart_print(const struct terminal *terminal, const struct profile *profile,
                 const struct view_options *view, struct error *error);

#endif
