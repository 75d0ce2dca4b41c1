// SPDX-License-Identifier: Apache-2.0
#include "tool/render/parts.h"

#include <stdarg.h>

#include "tool/base/text.h"

enum { INDENT = 2, PART_BYTES = 160 };
static const char separator[] = " \xc2\xb7 ";  // middle dot
enum { SEPARATOR_COLUMNS = 3 };

void parts_add(struct parts *parts, enum style style, const char *format, ...) {
    const struct terminal *terminal = parts->terminal;
    char part[PART_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
    text_cut(part, terminal->columns > INDENT ? terminal->columns - INDENT : 1);
    size_t columns = text_columns(part);
    bool is_new = parts->used + SEPARATOR_COLUMNS + columns > terminal->columns;
    if (parts->used && !is_new) {
        terminal_print(terminal, STYLE_DIM, "%s", separator);
        parts->used += SEPARATOR_COLUMNS;
    } else {
        if (parts->used) fputc('\n', terminal->out);
        terminal_indent(terminal, INDENT);
        parts->used = INDENT;
    }
    terminal_print(terminal, style, "%s", part);
    parts->used += columns;
}

void parts_end(struct parts *parts) {
    if (parts->used) fputc('\n', parts->terminal->out);
    parts->used = 0;
}
