// SPDX-License-Identifier: Apache-2.0
// Requests that wait for an engine: files of a directory, oldest first, with a bound for all of
// them together. What does not fit takes the place of the oldest. What a cairn leaves behind, the
// next one for the same engine sends.
//
//     NUMBER.body     what is sent
//     NUMBER.request  its time, the body's length, and what follows the path of the URL; written
//                     last, so that a request is there as a whole or not at all
#ifndef TOOL_PUSH_QUEUE_H
#define TOOL_PUSH_QUEUE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/base/protobuf.h"

struct queue_request {
    uint64_t number;
    uint64_t made_unix_ns;
    uint64_t bytes;  // of the body
    char *query;
};

struct queue {
    char directory[PATH_MAX];
    int lock;  // a descriptor; the directory is this process' as long as it is open
    uint64_t bytes, bytes_most;
    ARRAY(struct queue_request) requests;  // oldest first
    uint64_t last_number;
    uint64_t damaged;      // requests of an earlier push that are not whole
    uint64_t crowded_out;  // requests that had no room any more
};

// Opens `directory`, which is made if need be, for its user alone. False if another cairn has it.
bool queue_open(const char *directory, uint64_t bytes_most, struct queue *queue,
                struct error *error);
// The same in the first free one of PARENT/NAME.0, PARENT/NAME.1, ...
bool queue_open_any(const char *parent, const char *name, uint64_t bytes_most, struct queue *queue,
                    struct error *error);
// Requests stay in their files. A directory without any is removed if `is_own`.
void queue_close(struct queue *queue, bool is_own);

// `held`: the first so many are being sent and stay. False if it could not be written, or has no
// room beside them.
bool queue_add(struct queue *queue, size_t held, uint64_t unix_ns, const char *query,
               const struct byte_buffer *body, struct error *error);
void queue_remove(struct queue *queue, size_t index);
void queue_body_path(const struct queue *queue, size_t index, char path[PATH_MAX]);

// What a file NUMBER.request has; `head` has room for a 0 behind its `size` bytes, and is changed.
// The query is a part of it.
bool queue_parse_request(char *head, size_t size, struct queue_request *request);

#endif
