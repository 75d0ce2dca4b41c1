// SPDX-License-Identifier: Apache-2.0
// Answers as bytes of a recording (format/looks.h): what a view said of a process at a look, so
// that it can be asked for when the process is gone. They are written like any other form of an
// answer.
#ifndef TOOL_ANSWER_KEPT_H
#define TOOL_ANSWER_KEPT_H

#include "tool/answer/forms.h"

// Rows of one answer that are kept; `count` tells how many there were.
enum { ANSWER_KEPT_ROWS = 2000 };

// Writes an answer with all of its rows to a file or stream. False, with an error, without memory.
bool answer_write_kept(FILE *out, struct answer *answer, struct error *error);
extern const struct answer_form answer_form_kept;

// Bytes of a recording that are read.
struct kept_bytes {
    const uint8_t *at, *end;
};

struct kept_answer;

// Reads the next answer and moves behind it. NULL at the end, if the bytes make no sense, are of a
// later version, or without memory. The caller frees it.
struct kept_answer *kept_answer_read(struct kept_bytes *bytes);
void kept_answer_free(struct kept_answer *kept);

const char *kept_answer_view(const struct kept_answer *kept);

// Makes an answer of it as `options` ask for it: its first `top` rows. It lives as long as `kept`.
void kept_answer_open(struct kept_answer *kept, const struct view_options *options,
                      struct answer *answer);

#endif
