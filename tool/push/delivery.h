// SPDX-License-Identifier: Apache-2.0
// Brings what waits in a queue to an engine: oldest first, nothing older than the engine takes, and
// slower and slower while it does not answer. Nothing here knows a clock or a network: the times
// are the caller's, and so is who sends (curl.h). tests/unit/tool/push lets a day pass so.
//
//     sent              2xx, unless the answer is a page of HTML: something else listens there
//     tried again       no connection, an answer cut off or no answer of HTTP, 3xx, 401, 403, 404,
//                       405, 408, 429 and 5xx: the engine, or what leads to it, may be set right
//     dropped, counted  every other 4xx: the engine will not take this request
#ifndef TOOL_PUSH_DELIVERY_H
#define TOOL_PUSH_DELIVERY_H

#include "tool/push/queue.h"

#define DELIVERY_BATCH 16u  // requests of one run of the sender

// What became of a request.
struct outcome {
    unsigned status;         // of HTTP; 0: no answer
    uint64_t retry_after_s;  // that the engine asks for; 0: it does not
    bool is_page;            // of HTML
    char text[160];          // of the answer, or what went wrong: any bytes
};

struct sender {
    // Starts to send the first `count` requests of the queue. False: it cannot even start.
    bool (*begin)(void *context, const struct queue *queue, size_t count, struct error *error);
    // Whether it is over; then outcomes[0..count) say how.
    bool (*poll)(void *context, struct outcome *outcomes, size_t count);
    void *context;
};

struct delivery {
    struct queue *queue;
    struct sender sender;
    uint64_t age_most_ns;
    size_t in_flight;   // requests that are being sent
    uint64_t pause_ns;  // after the last failure; 0: it went well
    uint64_t next_ns;   // not before
    uint64_t sent, sent_bytes;
    uint64_t too_old, refused;  // dropped
    uint64_t tries, failures;   // requests that were sent, and that were not taken
    struct error problem;       // the last failure: what the engine said
    struct error refusal;       // the last request that was dropped: why
};

// Takes what came back, drops what is too old, sends what is next. Returns when it wants to be
// called again (UINT64_MAX: when something new waits, or the sender has news).
uint64_t delivery_turn(struct delivery *delivery, uint64_t now_ns, uint64_t unix_ns);

#endif
