// SPDX-License-Identifier: Apache-2.0
// Live pages: each has a stream of server-sent events with the figures of its process, one a
// second. A stream holds the event that it is sending and no other: a slow client misses events,
// and nothing piles up for it.
#ifndef TOOL_SERVE_STREAMS_H
#define TOOL_SERVE_STREAMS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/serve/processes.h"

#define STREAMS_MAX 32
#define STREAM_EVENT_BYTES 512

struct stream {
    bool is_used;
    bool is_suspended;  // it has nothing to send
    bool is_last;       // its process is gone: it ends when all is sent
    pid_t pid;
    unsigned serial;
    struct MHD_Connection *http;
    char event[STREAM_EVENT_BYTES];
    size_t size, sent;
};

struct streams {
    struct stream list[STREAMS_MAX];
    uint64_t next_ns;  // of the next events
};

// NULL: there are too many, or there is no memory. libmicrohttpd ends the stream with the response.
struct MHD_Response *streams_begin(struct streams *streams, const struct served *served,
                                   struct MHD_Connection *http);
// Sends what processes hold now, once a second.
void streams_send(struct streams *streams, struct processes *processes, uint64_t now_ns);
// Lets go of all, before the daemon stops.
void streams_close(struct streams *streams);

#endif
