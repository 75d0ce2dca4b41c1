// SPDX-License-Identifier: Apache-2.0
// Messages of Protocol Buffers in memory, field by field; every length is checked against what
// remains.
#ifndef TOOL_IMPORT_PROTOBUF_H
#define TOOL_IMPORT_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { WIRE_VARINT = 0, WIRE_EIGHT = 1, WIRE_BYTES = 2, WIRE_FOUR = 5, WIRE_BITS = 3 };

struct span {
    const uint8_t *at, *end;
};

struct field {
    uint32_t number;
    uint64_t value;     // of a varint
    struct span bytes;  // of anything else
    bool is_bytes;
};

bool span_varint(struct span *span, uint64_t *value);
// Takes `size` bytes.
bool span_skip(struct span *span, uint64_t size, struct span *skipped);
// The next field of a message; false if it is damaged.
bool span_field(struct span *span, struct field *field);
// Integers by field number, others are left out; false if the message is damaged.
bool span_integers(struct span span, uint64_t *values, uint32_t count);

// As a C string, for free(); NULL without memory.
char *span_text(struct span span);

// All that a stream has, for free(); NULL without memory, or if it is larger than 1 GiB.
uint8_t *span_load(FILE *in, struct span *message);

#endif
