// SPDX-License-Identifier: Apache-2.0
// The data of a page: a stream of named chunks, compressed (zlib) and written as base64, so that it
// may stand in HTML. It is written as it comes; memory holds one chunk.
//
// Uncompressed, a chunk is
//
//     1 byte   length of the name, 0 at the end of all
//     n bytes  name
//     1 byte   kind: enum web_chunk_kind
//     4 bytes  length of what follows, little-endian
//     n bytes  content
#ifndef TOOL_WEB_SINK_H
#define TOOL_WEB_SINK_H

#include <stdio.h>

#include "tool/base/byte_buffer.h"
#include "tool/base/deflater.h"
#include "tool/base/error.h"

enum web_chunk_kind {
    CHUNK_JSON = 'j',     // a text of JSON
    CHUNK_NUMBERS = 'n',  // integers, zigzag, seven bits a byte, the lowest first
    CHUNK_TEXTS = 't',    // texts, each ended by a zero byte
};

struct sink {
    FILE *out;  // not to be written to by others before sink_close
    struct deflater *deflater;
    bool is_bad;  // a chunk could not be made
    uint8_t carried[3];
    size_t carried_count;  // bytes that do not make four letters yet
};

// False without memory. sink_close ends the data; it must follow, also after failures.
bool sink_open(struct sink *sink, FILE *out, struct error *error);
bool sink_close(struct sink *sink, struct error *error);

void sink_put_chunk(struct sink *sink, const char *name, enum web_chunk_kind kind,
                    const void *bytes, size_t size);

// A chunk that grows. Without memory it says so in `bytes.has_failed` and takes no more.
struct column {
    struct byte_buffer bytes;
};

void column_put_number(struct column *column, int64_t number);
void column_put_text(struct column *column, const char *text);
// Writes what was put in as a chunk and frees it.
void sink_put_column(struct sink *sink, const char *name, enum web_chunk_kind kind,
                     struct column *column);

#endif
