// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/clock.h"

enum { BLOCK_BYTES = 1024 };

// libmicrohttpd asks for more to send.
static ssize_t give(void *context, uint64_t position, char *buffer, size_t most) {
    struct stream *stream = context;
    (void)position;
    size_t left = stream->size - stream->sent;
    if (!left && stream->is_last) return MHD_CONTENT_READER_END_OF_STREAM;
    if (!left) {
        stream->is_suspended = true;
        MHD_suspend_connection(stream->http);
        return 0;
    }
    size_t part = left < most ? left : most;
    memcpy(buffer, stream->event + stream->sent, part);
    stream->sent += part;
    return (ssize_t)part;
}

static void end(void *context) {
    struct stream *stream = context;
    stream->is_used = false;
}

struct MHD_Response *streams_begin(struct streams *streams, const struct served *served,
                                   struct MHD_Connection *http) {
    for (struct stream *stream = streams->list; stream < streams->list + STREAMS_MAX; stream++) {
        if (stream->is_used) continue;
        struct MHD_Response *response =
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, give, stream, end);
        if (!response) return NULL;
        *stream = (struct stream){
            .is_used = true, .pid = served->pid, .serial = served->serial, .http = http};
        // the browser's wait before it asks again when the server is away
        stream->size = (size_t)snprintf(stream->event, sizeof stream->event, "retry: 2000\n\n");
        streams->next_ns = 0;  // figures at once
        return response;
    }
    return NULL;
}

static void write_event(struct stream *stream, const struct metrics_process *now) {
    const struct figures *figures = &now->figures;
    stream->sent = 0;
    stream->size = (size_t)snprintf(
        stream->event, sizeof stream->event,
        "data: {\"live\":%" PRId64 ",\"blocks\":%" PRId64 ",\"allocated\":%" PRIu64
        ",\"calls\":%" PRIu64 ",\"rss\":%" PRIu64 ",\"peak\":%" PRIu64 ",\"running\":%s}\n\n",
        figures->exit_bytes, figures->exit_blocks, figures->allocated_bytes, figures->allocations,
        now->rss_bytes, figures->peak_bytes, now->is_running ? "true" : "false");
}

static void send_one(struct stream *stream, struct processes *processes) {
    struct metrics_process now;
    struct served *served = processes_only(processes);
    if (!served) served = processes_find(processes, stream->pid);
    if (stream->size > stream->sent) return;
    if (served && served->serial == stream->serial &&
        processes_figures(processes, served, &now, NULL)) {
        write_event(stream, &now);
    } else {
        stream->is_last = true;
        stream->sent = 0;
        stream->size = (size_t)snprintf(stream->event, sizeof stream->event,
                                        "event: gone\ndata: %s\n\n", served ? "another" : "ended");
    }
}

static void resume(struct stream *stream) {
    if (!stream->is_suspended) return;
    stream->is_suspended = false;
    MHD_resume_connection(stream->http);
}

void streams_send(struct streams *streams, struct processes *processes, uint64_t now_ns) {
    if (now_ns < streams->next_ns) return;
    streams->next_ns = now_ns + CLOCK_SECOND_NS;
    for (struct stream *stream = streams->list; stream < streams->list + STREAMS_MAX; stream++) {
        if (!stream->is_used) continue;
        send_one(stream, processes);
        resume(stream);
    }
}

void streams_close(struct streams *streams) {
    for (struct stream *stream = streams->list; stream < streams->list + STREAMS_MAX; stream++) {
        if (!stream->is_used) continue;
        stream->is_last = true;
        stream->size = stream->sent = 0;
        resume(stream);
    }
}
