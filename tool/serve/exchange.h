// SPDX-License-Identifier: Apache-2.0
// A request, its answer, and the connection that both go over.
#ifndef TOOL_SERVE_EXCHANGE_H
#define TOOL_SERVE_EXCHANGE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/serve/access.h"
#include "tool/serve/jobs.h"
#include "tool/serve/processes.h"
#include "tool/serve/streams.h"

#define BODY_MAX_BYTES (256u << 10)
#define CONNECTIONS_MAX 128
// Those among them that have not shown yet that they are allowed anything. Beyond that the oldest
// goes of the peer that has most of them: whoever sends a request at once is heard.
#define CONNECTIONS_UNPROVEN_MAX 64

enum connection_state {
    CONNECTION_READS,   // a request is awaited, or on its way
    CONNECTION_WAITS,   // its answer is being made
    CONNECTION_WRITES,  // its answer is on its way
    CONNECTION_STREAMS,
};

// The peer at the other end: an address without its port. All of a local socket are one.
struct peer {
    uint8_t address[16];
};

// One of the server's list; libmicrohttpd has its descriptor.
struct connection {
    struct connection *next, **link;
    int socket;
    enum connection_state state;
    uint64_t since_ns;  // in that state
    bool was_used;      // it had a request before
    bool is_allowed;    // one of them was allowed
    bool is_leaving;    // it was ended, and libmicrohttpd has not noticed yet
    struct peer peer;
};

struct route;

struct exchange {
    struct server *server;
    struct connection *connection;
    struct MHD_Connection *http;
    char *body;
    size_t body_size;
    bool is_too_large;
    const struct route *route;
    struct job *job;
};

struct server {
    const struct access_rule *rule;
    struct processes *processes;
    struct MHD_Daemon *daemon;
    struct jobs jobs;
    struct streams streams;
    struct connection *connections;
    struct exchange *waiting[CONNECTIONS_MAX];  // for jobs
    size_t waiting_count;
};

// Answers a request whose body is there, or begins to. (routes.c)
enum MHD_Result routes_answer(struct exchange *exchange, const char *method, const char *url);
// Its job has ended.
enum MHD_Result routes_answer_job(struct exchange *exchange);

#endif
