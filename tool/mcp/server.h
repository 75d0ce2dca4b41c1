// SPDX-License-Identifier: Apache-2.0
// What an agent's messages mean: reads one, answers at once what needs no command, and hands
// questions to the host, which runs them and reports their end. Makes no process and reads no
// stream, so that it can be tested and fuzzed by itself.
#ifndef TOOL_MCP_SERVER_H
#define TOOL_MCP_SERVER_H

#include "tool/mcp/answer.h"
#include "tool/mcp/protocol.h"

enum { SERVER_QUESTIONS_MAX = 32, SERVER_STREAMS_MAX = 8, SERVER_LINE_BYTES = 1 << 20 };

struct server_host {
    void *context;
    // Sends a line; the text is taken over.
    void (*send)(void *context, char *line);
    // Begins with a question, or puts it in a queue; it stays in place until its end is reported.
    void (*start)(void *context, struct question *question);
    // Its client does not want it any more: server_question_ended follows, or was called.
    void (*cancel)(void *context, struct question *question);
};

struct server {
    struct server_host host;
    const struct roots *roots;
    bool can_run, has_apps;    // has_apps: said by initialize; modern requests say it each
    char *(*make_page)(void);  // without data, for free(); NULL without memory
    const char *version;       // legacy, settled by initialize; NULL: none yet
    struct question *questions[SERVER_QUESTIONS_MAX];  // under way; NULL: free
    json_t *streams[SERVER_STREAMS_MAX];               // ids of subscriptions/listen; NULL: free
};

// A line without its end. Nothing in it is trusted.
void server_read(struct server *server, const char *line, size_t bytes);
// A line was longer than SERVER_LINE_BYTES, and has been left out.
void server_read_too_long(struct server *server);

// The end of a question; `outcome` NULL: it was cancelled, and nobody hears of it. Frees it.
void server_question_ended(struct server *server, struct question *question,
                           const struct outcome *outcome);
// It goes on: `seconds` since its start.
void server_question_goes_on(struct server *server, const struct question *question, int seconds);

// The client has closed its end: subscriptions end.
void server_end_streams(struct server *server);
void server_free(struct server *server);

#endif
