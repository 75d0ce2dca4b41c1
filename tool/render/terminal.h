// SPDX-License-Identifier: Apache-2.0
// Where text goes: how wide it is and whether it shows colours.
#ifndef TOOL_RENDER_TERMINAL_H
#define TOOL_RENDER_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct terminal {
    FILE *out;
    size_t columns;
    bool has_color;
    bool is_terminal;  // false: a pipe or a file
};

enum style { STYLE_PLAIN, STYLE_STRONG, STYLE_DIM, STYLE_NAME, STYLE_WARNING };

// Width: $COLUMNS, else the terminal's, else 80. Colours only on a terminal, without NO_COLOR.
struct terminal terminal_of(FILE *out);

// Prints text of the tool itself, or text that went through text_escape.
void terminal_print(const struct terminal *terminal, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// `count` spaces.
void terminal_indent(const struct terminal *terminal, size_t count);

#endif
