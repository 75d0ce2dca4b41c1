// SPDX-License-Identifier: Apache-2.0
// Reads the part of TOML that a table of settings needs, and refuses the rest by name: comments,
// [table] and ["quoted table"], key = value with bare or quoted keys; values are one-line strings
// ("with \" \\ \n \t escapes" or 'literal'), integers with underscores, floats. No arrays, inline
// tables, dates, dotted names or multi-line strings. What it accepts means the same in TOML 1.0.
#ifndef TOOL_BASE_TOML_H
#define TOOL_BASE_TOML_H

#include <stdbool.h>
#include <stdio.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

#define TOML_TEXT_BYTES 512  // longest name or text, its end included

struct toml_entry {
    char table[TOML_TEXT_BYTES];  // "": before the first table
    char key[TOML_TEXT_BYTES];    // "": the table's own line
    bool is_text;
    char text[TOML_TEXT_BYTES];  // of a text; of a number as it is written, without underscores
    double number;
    unsigned line;
};

struct toml {
    ARRAY(struct toml_entry) entries;  // in the file's order
};

// False with an error "NAME:LINE: ...", or without memory.
bool toml_read(FILE *file, const char *name, struct toml *toml, struct error *error);
void toml_free(struct toml *toml);

#endif
