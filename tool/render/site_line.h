// SPDX-License-Identifier: Apache-2.0
// A site as the rest of a line that began with figures: "function  file.c:12  ← caller ← caller".
#ifndef TOOL_RENDER_SITE_LINE_H
#define TOOL_RENDER_SITE_LINE_H

#include "tool/render/site.h"
#include "tool/render/terminal.h"

// `figures_columns` are taken already. Callers that have no room behind the place get a line of
// their own.
void site_print(const struct terminal *terminal, const struct site *site, size_t figures_columns);

#endif
