// SPDX-License-Identifier: Apache-2.0
// The engines that take profiles or metrics, a row each: where in a URL they take them, in which
// form, and what they take at most. A new engine is a row and an encoder.
//
// The limits are what the engine's documentation says, and the least of several settings where it
// can be set. docs/howto/push.md names them.
#ifndef TOOL_PUSH_ENGINE_H
#define TOOL_PUSH_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "tool/base/protobuf.h"
#include "tool/export/export.h"

// What one request is made of: of an engine for profiles a profile, of one for metrics their text.
struct parcel {
    const struct export *export;
    const struct export_label *labels;  // "service_name" is among them
    size_t label_count;
    const char *metrics;  // as Prometheus scrapes them
    uint64_t start_unix_ns, end_unix_ns;
};

struct engine {
    const char *name;     // as --format has it
    const char *help;     // what it is
    const char *path;     // where in a URL it takes them
    unsigned port;        // the usual one; 0: none of its own
    const char *headers;  // lines
    bool is_of_metrics;
    size_t stacks_most;    // in one profile
    size_t bytes_most;     // of a profile before it is compressed
    uint64_t age_most_ns;  // of what is still sent
    // The body of a request, and what follows the path of its URL ("": nothing). `plain_bytes`:
    // before compression.
    bool (*encode)(const struct parcel *parcel, struct byte_buffer *body, char *query,
                   size_t query_size, size_t *plain_bytes, struct error *error);
};

extern const struct engine engines[];  // ends with name NULL

// Where to push to.
#define DESTINATION_URL_BYTES 1024
struct destination {
    const struct engine *engine;
    char url[DESTINATION_URL_BYTES];   // without what follows the path
    char name[DESTINATION_URL_BYTES];  // the same for people: without user and password
};

// The engine is the one that was named (NULL: none was), that the URL's path is of, or that its
// port is usual for. A URL whose path is not an engine's gets that at its end.
bool destination_read(const char *url, const char *engine, struct destination *destination,
                      struct error *error);

// Longest text that follows the path of a URL.
#define ENGINE_QUERY_BYTES 8192

#endif
