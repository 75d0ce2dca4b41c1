// SPDX-License-Identifier: Apache-2.0
// Frames as they are written, each once, since many stacks go through the same code.
#ifndef TOOL_ANSWER_FRAME_TEXTS_H
#define TOOL_ANSWER_FRAME_TEXTS_H

#include "tool/base/json.h"
#include "tool/model/index_table.h"
#include "tool/render/frames.h"

struct frame_text {
    const struct frame *frame;
    char *text;
    size_t length;
};

struct frame_texts {
    ARRAY(struct frame_text) texts;
    struct index_table table;
};

// Puts the frame as a member of an array of JSON; without memory it is written anew each time.
void frame_texts_put_json(struct frame_texts *texts, struct json *json, const struct frame *frame);
// Writes the frame's name, safe, without ";" and with quotes doubled, likewise.
void frame_texts_put_name(struct frame_texts *texts, FILE *out, const struct frame *frame);
// One of the two is used between the start, all zeros, and this.
void frame_texts_free(struct frame_texts *texts);

#endif
