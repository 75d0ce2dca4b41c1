// SPDX-License-Identifier: Apache-2.0
// The whole terminal, by curses: what its screens share. Colours are the terminal's own default
// with attributes and two accents, so that light and dark backgrounds both stay readable; NO_COLOR
// leaves the attributes. Where the locale is one without UTF-8, characters outside of ASCII become
// ones within it, each of the same width.
#ifndef TOOL_TUI_WINDOW_H
#define TOOL_TUI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

// Takes the terminal; curses' endwin gives it back.
void window_start(void);

// Attribute of names, and of warnings.
int window_accent(void);
int window_warning(void);

// Safe text (tool/base/text.h) cut to `columns`; returns the columns that it took.
size_t window_put(int attribute, const char *text, size_t columns);

// A line of text with the styles of tool/render/terminal.h in it, as escape sequences; on top of
// `attribute`. A line that is selected (A_REVERSE) is filled up to `columns`.
void window_put_styled(int attribute, const char *text, size_t columns);

// Reads a line at the foot; false: taken back.
bool window_input(const char *prompt, char *input, size_t size);

// The same text in ASCII, in place.
void window_to_ascii(char *text);

#endif
