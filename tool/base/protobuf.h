// SPDX-License-Identifier: Apache-2.0
// The wire format of Protocol Buffers, written. Each message is put together in memory and then
// written as a field of the message around it; the outermost one may be a stream.
#ifndef TOOL_BASE_PROTOBUF_H
#define TOOL_BASE_PROTOBUF_H

#include <stdio.h>

#include "tool/base/byte_buffer.h"

// One of several integers in a row, without a tag: for the inside of packed fields.
static inline void message_put_bare(struct byte_buffer *message, uint64_t value) {
    byte_buffer_put_varint(message, value);
}
// An integer; 0 is what a field is that is not there, and takes no room.
void message_put(struct byte_buffer *message, unsigned field, uint64_t value);
// The same where a field that is not there is no 0: of a oneof, or with presence.
void message_put_always(struct byte_buffer *message, unsigned field, uint64_t value);
// Numbers of eight bytes; 0 is written too.
void message_put_fixed(struct byte_buffer *message, unsigned field, uint64_t value);
void message_put_double(struct byte_buffer *message, unsigned field, double value);
void message_put_bytes(struct byte_buffer *message, unsigned field, const void *bytes, size_t size);
void message_put_text(struct byte_buffer *message, unsigned field, const char *text);
// `inner` as a field of `outer`; it is empty then.
void message_put_message(struct byte_buffer *outer, unsigned field, struct byte_buffer *inner);

// Fields of the outermost message.
void message_write_integer(FILE *out, unsigned field, uint64_t value);
void message_write_bytes(FILE *out, unsigned field, const void *bytes, size_t size);
// `message` is empty then.
void message_write(FILE *out, unsigned field, struct byte_buffer *message);

#endif
