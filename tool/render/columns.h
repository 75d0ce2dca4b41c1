// SPDX-License-Identifier: Apache-2.0
// Columns of figures: their heads and their cells are laid out by the same rows, so that both
// change together.
#ifndef TOOL_RENDER_COLUMNS_H
#define TOOL_RENDER_COLUMNS_H

#include "tool/base/units.h"
#include "tool/render/terminal.h"

struct column {
    const char *head;  // "": none; a longer one reaches into the column on its left
    size_t width;
    enum style style;  // of the cells
    bool is_left;      // text begins where the column does; else it ends there
};

struct columns {
    const struct column *items;
    size_t count;
    size_t indent, gap;  // blanks before the first one, and between two
};

// How many columns of the terminal they take.
size_t columns_width(const struct columns *columns);

// The heads, without the end of the line: what follows the figures has a head of its own.
void columns_print_heads(const struct terminal *terminal, const struct columns *columns);

// A line of cells, a text for each column, without the end of the line.
void columns_print(const struct terminal *terminal, const struct columns *columns,
                   const struct unit_text *texts);

// ", the first 10 (--top 0: all)" behind the heading of a list that is cut there, with the option
// that did it; nothing if all of it is shown.
void list_print_cut(const struct terminal *terminal, const struct view_options *view, size_t shown,
                    size_t count);

#endif
