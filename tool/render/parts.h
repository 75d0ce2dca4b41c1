// SPDX-License-Identifier: Apache-2.0
// A sentence in parts, "exact · nothing lost": indented, with a new line where the next part does
// not fit.
#ifndef TOOL_RENDER_PARTS_H
#define TOOL_RENDER_PARTS_H

#include "tool/render/terminal.h"

struct parts {
    const struct terminal *terminal;
    size_t used;  // columns of the line so far
};

// The part is cut if it is wider than a line.
void parts_add(struct parts *parts, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Ends the last line, if there is one.
void parts_end(struct parts *parts);

#endif
