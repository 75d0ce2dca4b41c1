// SPDX-License-Identifier: Apache-2.0
#include "tool/render/columns.h"

#include <string.h>

size_t columns_width(const struct columns *columns) {
    size_t width = columns->indent;
    for (size_t i = 0; i < columns->count; i++)
        width += columns->items[i].width + (i ? columns->gap : 0);
    return width;
}

void columns_print_heads(const struct terminal *terminal, const struct columns *columns) {
    enum { LINE_BYTES = 256 };
    char line[LINE_BYTES] = "";
    size_t used = 0, end = columns->indent;
    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->items[i];
        size_t length = strlen(column->head);
        end += column->width + (i ? columns->gap : 0);
        size_t start = column->is_left ? end - column->width : end > length ? end - length : 0;
        size_t least = i ? used + 1 : 0;
        if (start < least) start = least;
        if (!length || start + length >= sizeof line) continue;
        memset(line + used, ' ', start - used);
        memcpy(line + start, column->head, length + 1);
        used = start + length;
    }
    terminal_print(terminal, STYLE_DIM, "%-*s", (int)end, line);
}

void columns_print(const struct terminal *terminal, const struct columns *columns,
                   const struct unit_text *texts) {
    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->items[i];
        int width = column->is_left ? -(int)column->width : (int)column->width;
        terminal_indent(terminal, i ? columns->gap : columns->indent);
        terminal_print(terminal, column->style, "%*s", width, texts[i].text);
    }
}

void list_print_cut(const struct terminal *terminal, const struct view_options *view, size_t shown,
                    size_t count) {
    if (shown == count) return;
    bool is_by_top = shown == view->top;
    const char *option = view->min_bytes > 0 ? "--min-bytes" : "--threshold";
    terminal_print(terminal, STYLE_DIM, ", the first %s (%s)", units_count((int64_t)shown).text,
                   is_by_top ? "--top 0: all" : option);
}
