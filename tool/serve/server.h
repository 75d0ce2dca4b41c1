// SPDX-License-Identifier: Apache-2.0
// `cairn serve`: what recorded processes hold, over HTTP.
//
// One thread does everything, by libmicrohttpd's epoll: it answers what is little (indexes,
// metrics, ticks of the live page) itself and has the rest made by children (jobs.h). Nothing is
// read of a recording that nobody asks for. The processes are not stopped and not asked.
//
// Everything that a client can make grow has an end: connections, headers, bodies, requests at
// work, streams, and the time that each may take.
#ifndef TOOL_SERVE_SERVER_H
#define TOOL_SERVE_SERVER_H

#include "tool/serve/access.h"
#include "tool/serve/listen.h"
#include "tool/serve/processes.h"

struct server_order {
    struct processes *processes;
    struct listener *listener;
    struct access_rule rule;
    void (*ready)(void *context);  // called when requests are answered; may be NULL
    void *context;
};

// Serves until SIGINT or SIGTERM.
bool server_run(const struct server_order *order, struct error *error);

#endif
