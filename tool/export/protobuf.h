// SPDX-License-Identifier: Apache-2.0
// The wire format of Protocol Buffers. Each message is put together in memory and then written as a
// field of the message around it; the outermost one is a stream.
#ifndef TOOL_EXPORT_PROTOBUF_H
#define TOOL_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct message {
    uint8_t *bytes;
    size_t size, capacity;
    bool has_failed;  // there was no memory
};

// One of several integers in a row, without a tag: for the inside of packed fields.
void message_put_bare(struct message *message, uint64_t value);

// An integer; 0 is what a field is that is not there, and takes no room.
void message_put(struct message *message, unsigned field, uint64_t value);
void message_put_bytes(struct message *message, unsigned field, const void *bytes, size_t size);

// `inner` as a field of `outer`; it is empty then.
void message_put_message(struct message *outer, unsigned field, struct message *inner);

// A field of the outermost message. The message is empty then.
void message_write(FILE *out, unsigned field, struct message *message);
void message_write_bytes(FILE *out, unsigned field, const void *bytes, size_t size);
void message_write_integer(FILE *out, unsigned field, uint64_t value);

void message_free(struct message *message);

#endif
