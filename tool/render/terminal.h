// SPDX-License-Identifier: Apache-2.0
// Where text goes: how wide it is and whether it shows colours.
#ifndef TOOL_RENDER_TERMINAL_H
#define TOOL_RENDER_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tool/model/measure.h"

struct terminal {
    FILE *out;
    size_t columns;
    bool has_color;
    bool is_terminal;  // false: a pipe or a file
};

enum style { STYLE_PLAIN, STYLE_STRONG, STYLE_DIM, STYLE_NAME, STYLE_WARNING };

// Width: $COLUMNS, else the terminal's, else 80. Colours only on a terminal, without NO_COLOR,
// unless terminal_set_color said otherwise.
struct terminal terminal_of(FILE *out);

// "always", "never" or "auto", from now on; false: it is none of these.
bool terminal_set_color(const char *when);

// Prints text of the tool itself, or text that went through text_escape.
void terminal_print(const struct terminal *terminal, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// `count` spaces.
void terminal_indent(const struct terminal *terminal, size_t count);

// Prints words behind each other from column `first` on, on further lines behind `indent` columns
// where they do not fit, and ends the line. A unit stays with its number, short brackets are whole.
void terminal_print_wrapped(const struct terminal *terminal, size_t first, size_t indent,
                            const char *text);
// The same in a style, without an end of the line, from column `used` on; a blank at the front
// parts it from what is there. Returns the columns of the last line.
size_t terminal_print_words(const struct terminal *terminal, enum style style, size_t used,
                            size_t indent, const char *text);

// Prints a line, or several; the words of a wide one go on behind its own indent and two columns
// more.
void terminal_print_line(const struct terminal *terminal, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A sentence in parts, "exact · nothing lost": indented, with a new line where the next part does
// not fit.

struct parts {
    const struct terminal *terminal;
    size_t used;  // columns of the line so far; a caller may start it by itself
};

// A part that is wider than a line is wrapped at its words.
void parts_add(struct parts *parts, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Ends the last line, if there is one.
void parts_end(struct parts *parts);

// Bytes over time, "1.2 MiB/min": in the unit of time in which the number is handy.

void rate_text(double bytes_per_s, char *out, size_t size);

// A row of numbers as a row of block characters.

// Values that are known at times: ascending, at any distance.
struct spark_line {
    const uint64_t *times;
    const int64_t *values;
    size_t count;
};

// The line from its first time to its last in columns that are equally long. Between two values it
// is straight; where a column has several it shows the highest.
void spark_over_time(const struct spark_line *line, int64_t *columns, size_t count);

// A character a value. The highest fills its character; what is above 0 is never blank.
void spark_print(const struct terminal *terminal, const int64_t *values, size_t count);

// The same for a histogram: each value is one character, and 0 is a dot.
void spark_print_histogram(const struct terminal *terminal, const uint64_t *values, size_t count);

// What a user chose for a view.

struct frame;

struct view_options {
    enum measure by;
    size_t top;                 // entries of a list, children of a tree's node; 0: all
    size_t depth;               // frames of a stack, levels of a tree; 0: all
    double threshold;           // least share of the whole that is worth a line, 0 to 1
    int64_t min_bytes;          // least value of a line; 0: any
    const struct frame *pivot;  // tree: starts at this function; NULL: whole stacks
    bool has_lines;             // tree: each line of a function is a node
    bool is_inverted;           // tree: from the allocating functions to their callers
    bool has_all_frames;        // internal frames is shown as well
    bool is_plain_number;       // sizes in bytes
};

// The least value that is worth a line, at least 1.
int64_t view_threshold(const struct view_options *view, int64_t whole);

#endif
