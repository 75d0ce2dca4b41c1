// SPDX-License-Identifier: Apache-2.0
// A source file with what its lines hold: itself, with all they call, and how many calls.
#ifndef TOOL_RENDER_ANNOTATE_H
#define TOOL_RENDER_ANNOTATE_H

#include "tool/answer/answer.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Makes a row of each line; people get those with figures and those around them, or all if
// view->top is 0. `wanted` is a file's name, or the end of its path; NULL: the file that holds the
// most and can be read. False with an error if no such file is there, if it cannot be read, or
// without memory.
bool annotate_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     const char *wanted, struct error *error);

// `wanted` is the end of a path.
bool annotate_is_meant(const char *path, const char *wanted);
// A line of source without tabs and its end.
void annotate_expand(const char *line, char *out, size_t size);

// Opens a source for reading; paths come from other people's files, so nothing but a regular file
// is opened. NULL with errno.
FILE *annotate_open_source(const char *path);

#endif
