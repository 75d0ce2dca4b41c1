// SPDX-License-Identifier: Apache-2.0
#include "tool/render/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, COLUMNS_MIN = 40, COLUMNS_MAX = 1000 };

static size_t width_of(int descriptor) {
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && !ioctl(descriptor, TIOCGWINSZ, &size)) columns = size.ws_col;
    if (columns <= 0) columns = COLUMNS_DEFAULT;
    if (columns < COLUMNS_MIN) columns = COLUMNS_MIN;
    return (size_t)(columns > COLUMNS_MAX ? COLUMNS_MAX : columns);
}

struct terminal terminal_of(FILE *out) {
    const char *no_color = getenv("NO_COLOR"), *kind = getenv("TERM");
    int descriptor = fileno(out);
    bool is_dumb = !kind || !strcmp(kind, "dumb");
    bool is_terminal = descriptor >= 0 && isatty(descriptor);
    return (struct terminal){.out = out,
                             .columns = width_of(descriptor),
                             .is_terminal = is_terminal,
                             .has_color = is_terminal && !is_dumb && !(no_color && *no_color)};
}

void terminal_print(const struct terminal *terminal, enum style style, const char *format, ...) {
    // red and cyan can be read on light and on dark; yellow and blue cannot
    static const char *const codes[] = {[STYLE_PLAIN] = "",
                                        [STYLE_STRONG] = "\033[1m",
                                        [STYLE_DIM] = "\033[2m",
                                        [STYLE_NAME] = "\033[36m",
                                        [STYLE_WARNING] = "\033[31m"};
    bool is_styled = terminal->has_color && style != STYLE_PLAIN;
    if (is_styled) fputs(codes[style], terminal->out);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(terminal->out, format, arguments);
    va_end(arguments);
    if (is_styled) fputs("\033[0m", terminal->out);
}

void terminal_indent(const struct terminal *terminal, size_t count) {
    fprintf(terminal->out, "%*s", (int)count, "");
}
