// SPDX-License-Identifier: Apache-2.0
#include "tool/render/terminal.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

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

static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color;

bool terminal_set_color(const char *when) {
    static const char *const words[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(when, words[i]) != 0) continue;
        color = i;
        return true;
    }
    return false;
}

struct terminal terminal_of(FILE *out) {
    const char *no_color = getenv("NO_COLOR"), *kind = getenv("TERM");
    int descriptor = fileno(out);
    bool is_dumb = !kind || !strcmp(kind, "dumb");
    bool is_terminal = descriptor >= 0 && isatty(descriptor);
    bool is_usual = is_terminal && !is_dumb && !(no_color && *no_color);
    return (struct terminal){.out = out,
                             .columns = width_of(descriptor),
                             .is_terminal = is_terminal,
                             .has_color = color == COLOR_AUTO ? is_usual : color == COLOR_ALWAYS};
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

enum { LINE_BYTES = 2048, BRACKETS_BYTES = 32 };

// Returns true if a unit begins at `text`.
static bool is_unit(const char *text) {
    static const char *const units[] = {"%",  "B",  "KiB", "MiB", "GiB", "TiB",
                                        "ns", "us", "ms",  "s",   "min", "h"};
    const size_t length = strcspn(text, " ,;:.)");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && !strncmp(units[i], text, length)) return true;
    return false;
}

// Returns the bytes up to the bracket that closes the one at `text`; 0: it is far, or missing.
static size_t brackets_bytes(const char *text) {
    const char *end = strchr(text, ')');
    return end && end - text < BRACKETS_BYTES ? (size_t)(end - text) : 0;
}

// Returns the end of a word, at which a line may end: a unit stays with its number, an interval
// with its sign, and short brackets stay whole.
static const char *word_end(const char *word) {
    static const char sign_end = '\xb1';  // the last byte of a plus-minus sign
    const char *at = word;
    for (; *at; at++) {
        if (*at == '(') at += brackets_bytes(at);
        if (*at != ' ') continue;
        const bool is_kept = at > word && ((at[-1] >= '0' && at[-1] <= '9' && is_unit(at + 1)) ||
                                           at[-1] == sign_end);
        if (!is_kept) break;
    }
    return at;
}

size_t terminal_print_words(const struct terminal *terminal, enum style style, size_t used,
                            size_t indent, const char *text) {
    bool is_first = *text != ' ';
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        const char *end = word_end(text);
        const size_t columns = text_columns(text) - text_columns(end);
        if (!is_first && used > indent && used + 1 + columns > terminal->columns) {
            fputc('\n', terminal->out);
            terminal_indent(terminal, indent);
            used = indent;
            is_first = true;
        }
        terminal_print(terminal, style, "%s%.*s", is_first ? "" : " ", (int)(end - text), text);
        used += columns + !is_first;
        is_first = false;
        text = end;
    }
    return used;
}

void terminal_print_wrapped(const struct terminal *terminal, size_t first, size_t indent,
                            const char *text) {
    terminal_print_words(terminal, STYLE_PLAIN, first, indent, text);
    fputc('\n', terminal->out);
}

void terminal_print_line(const struct terminal *terminal, enum style style, const char *format,
                         ...) {
    enum { FURTHER = 2 };
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    char *rest = line;
    for (char *one = strsep(&rest, "\n"); one; one = strsep(&rest, "\n")) {
        const size_t blanks = strspn(one, " ");
        if (text_columns(one) <= terminal->columns) {
            terminal_print(terminal, style, "%s\n", one);
            continue;
        }
        terminal_indent(terminal, blanks);
        terminal_print_words(terminal, style, blanks, blanks + FURTHER, one + blanks);
        fputc('\n', terminal->out);
    }
}

enum { INDENT = 2, PART_BYTES = 1024 };
static const char separator[] = " \xc2\xb7 ";  // middle dot
enum { SEPARATOR_COLUMNS = 3 };

void parts_add(struct parts *parts, enum style style, const char *format, ...) {
    const struct terminal *terminal = parts->terminal;
    char part[PART_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
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
    parts->used = terminal_print_words(terminal, style, parts->used, 2 * INDENT, part);
}

void parts_end(struct parts *parts) {
    if (parts->used) fputc('\n', parts->terminal->out);
    parts->used = 0;
}

enum { MINUTE_S = 60, HOUR_MIN = 60 };

void rate_text(double bytes_per_s, char *out, size_t size) {
    const double small = 10 * 1024;
    const char *unit = "s";
    if (bytes_per_s < small) {
        bytes_per_s *= MINUTE_S;
        unit = "min";
    }
    if (bytes_per_s < small) {
        bytes_per_s *= HOUR_MIN;
        unit = "h";
    }
    const double most = 0x1p62;
    int64_t bytes = (int64_t)(bytes_per_s < most ? bytes_per_s : most);
    snprintf(out, size, "%s/%s", units_size(bytes).text, unit);
}

enum { STEPS = 8 };

static const char *block_of(double share) {
    static const char *const blocks[] = {" ",
                                         "\xe2\x96\x81",
                                         "\xe2\x96\x82",
                                         "\xe2\x96\x83",
                                         "\xe2\x96\x84",
                                         "\xe2\x96\x85",
                                         "\xe2\x96\x86",
                                         "\xe2\x96\x87",
                                         "\xe2\x96\x88"};
    int step = share > 0 ? (int)(share * STEPS + 0.5) : 0;
    if (share > 0 && step < 1) step = 1;
    return blocks[step < STEPS ? step : STEPS];
}

// Of the values in the column the highest; if there is none, what lies on the line between the two
// around its middle.
static int64_t value_between(const struct spark_line *line, double from, double to) {
    double middle = (from + to) / 2;
    int64_t most = 0;
    bool is_any = false;
    size_t before = 0;
    for (size_t i = 0; i < line->count; i++) {
        double at = (double)line->times[i];
        if (at <= middle) before = i;
        if (at < from || at >= to) continue;
        if (!is_any || line->values[i] > most) most = line->values[i];
        is_any = true;
    }
    if (is_any || before + 1 >= line->count) return is_any ? most : line->values[before];
    double start = (double)line->times[before], end = (double)line->times[before + 1];
    double share = end > start ? (middle - start) / (end - start) : 0;
    return (int64_t)((1 - share) * (double)line->values[before] +
                     share * (double)line->values[before + 1]);
}

void spark_over_time(const struct spark_line *line, int64_t *columns, size_t count) {
    if (!line->count) {
        memset(columns, 0, count * sizeof *columns);
        return;
    }
    double first = (double)line->times[0], span = (double)line->times[line->count - 1] - first;
    for (size_t i = 0; i < count; i++) {
        double from = first + span * (double)i / (double)count;
        double to = first + span * (double)(i + 1) / (double)count;
        columns[i] = value_between(line, from, i + 1 < count ? to : to + 1);
    }
}

void spark_print(const struct terminal *terminal, const int64_t *values, size_t count) {
    int64_t most = 0;
    for (size_t i = 0; i < count; i++)
        if (values[i] > most) most = values[i];
    for (size_t i = 0; i < count; i++) {
        double share = most > 0 ? (double)values[i] / (double)most : 0;
        terminal_print(terminal, STYLE_NAME, "%s", block_of(share));
    }
}

void spark_print_histogram(const struct terminal *terminal, const uint64_t *values, size_t count) {
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        if (values[i] > most) most = values[i];
    for (size_t i = 0; i < count; i++)
        if (values[i])
            terminal_print(terminal, STYLE_NAME, "%s", block_of((double)values[i] / (double)most));
        else
            terminal_print(terminal, STYLE_DIM, ".");
}

int64_t view_threshold(const struct view_options *view, int64_t whole) {
    double share = ceil((double)whole * view->threshold);
    int64_t least = share >= 1 && share < (double)INT64_MAX ? (int64_t)share : 1;
    return least > view->min_bytes ? least : view->min_bytes;
}
