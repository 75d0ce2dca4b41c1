// SPDX-License-Identifier: Apache-2.0
// What a command printed, as an answer that an agent can afford: a page of whole lines, and below
// it the questions that show more. Never 4 KiB.
#ifndef TOOL_MCP_ANSWER_H
#define TOOL_MCP_ANSWER_H

#include "tool/mcp/question.h"

enum { ANSWER_BYTES = 4096, ANSWER_OUTPUT_BYTES = 16 << 20 };  // with the byte behind its end

// What became of a question's command.
struct outcome {
    const char *out;  // standard output, of a run its summary; ANSWER_OUTPUT_BYTES at most
    size_t out_bytes;
    const char *errors;  // standard error, of a run what the program printed: the end of it
    size_t errors_bytes;
    int status;       // of its end, as a shell has it
    bool is_cut;      // it printed more than is kept
    bool is_late;     // it was ended after question->seconds
    bool is_written;  // a run: the recording is there
};

// The answer into `text`, safe UTF-8. Returns whether the command failed.
bool answer_write(const struct question *question, const struct roots *roots,
                  const struct outcome *outcome, char text[ANSWER_BYTES]);

#endif
