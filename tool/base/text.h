// SPDX-License-Identifier: Apache-2.0
// Untrusted text (names from recordings and ELF files, paths) made safe for a terminal, and its
// width in columns.
//
// Safe text is valid UTF-8 without control characters and without characters that turn the
// direction of writing; every offending byte becomes \xNN.
//
// Regular expressions of users: Perl's syntax (PCRE2), searched anywhere in a text. No text makes a
// search endless: PCRE2 gives up at its own limits, which counts as no match.
#ifndef TOOL_BASE_TEXT_H
#define TOOL_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tool/base/error.h"

// Length of the safe character at `text` (at most `size` bytes are there), or 0: escape one byte.
size_t text_safe_length(const char *text, size_t size);

// Writes the safe form into `out` (`size` > 0 bytes, always terminated; cut at a whole character).
void text_escape(char *out, size_t size, const char *text);

// Columns that safe text takes: one for a character, none for a combining mark, two for a wide one.
size_t text_columns(const char *text);

// Cuts safe text to `columns` >= 1, the last being an ellipsis if something was cut.
void text_cut(char *text, size_t columns);

// Writes safe text as the content of an element, or the value of an attribute, of HTML or SVG.
void text_put_markup(FILE *out, const char *text);

// Writes text as one word for a shell and for the parser of options: as it is, or between single
// quotes. `size` > 0 as with text_escape; what does not fit is cut.
void text_quote(char *out, size_t size, const char *text);
// The same of a word that need not be a path: one that begins with "-" stays as it is.
void text_quote_word(char *out, size_t size, const char *text);

// Last part of a path ("a/b.c" -> "b.c"), the whole if that is empty.
const char *text_base_name(const char *path);

struct pattern;

// False with an error that says where the expression is wrong, or without memory.
bool pattern_compile(const char *text, struct pattern **pattern, struct error *error);
void pattern_free(struct pattern *pattern);  // takes NULL

bool pattern_matches(const struct pattern *pattern, const char *text);

#endif
