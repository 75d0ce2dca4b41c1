// SPDX-License-Identifier: Apache-2.0
// A request under way that a command of cairn answers: which command line it is, and what its
// client wants to hear. Paths in it are resolved and below the roots, relative to the first one
// where they can be; nothing a client writes can become another option or another command.
#ifndef TOOL_MCP_QUESTION_H
#define TOOL_MCP_QUESTION_H

#include <limits.h>

#include "tool/mcp/roots.h"
#include "tool/mcp/tools.h"

enum { QUESTION_WORDS_MAX = 256, QUESTION_WORD_BYTES = 4096 };
// Where a command that records writes its summary: the host has a file there.
enum { QUESTION_SUMMARY_FD = 3 };

struct question {
    json_t *id;     // owned
    json_t *token;  // of progress; NULL: it is not wanted. Owned
    bool is_modern;
    bool is_resource;        // resources/read: the answer is the content
    char uri[3 * PATH_MAX];  // of the resource
    const struct mcp_tool *tool;
    json_t *arguments;  // as they were given; owned
    size_t page;        // from 1
    int seconds;        // it may take

    char *words[QUESTION_WORDS_MAX + 1];  // "cairn", the command, ...; owned; ends with NULL
    size_t word_count;
    char directory[PATH_MAX];  // where the command runs
    char output[PATH_MAX];     // the recording that it makes; "": it makes none
};

// Fills all but id, token and era. False with an error for the agent that names the argument.
bool question_make(struct question *question, const struct roots *roots, bool can_run,
                   const struct mcp_tool *tool, json_t *arguments, struct error *error);
// The summary of a recording, as a resource.
bool question_make_resource(struct question *question, const struct roots *roots, const char *uri,
                            struct error *error);
void question_free(struct question *question);

#endif
