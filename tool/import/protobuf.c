// SPDX-License-Identifier: Apache-2.0
#include "tool/import/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { EIGHT_BYTES = 8, FOUR_BYTES = 4, VARINT_BITS = 7, VARINT_MORE = 0x80 };
enum { MESSAGE_MAX = 1 << 30, CHUNK_BYTES = 1 << 16 };

bool span_varint(struct span *span, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; span->at < span->end && shift < 64; shift += VARINT_BITS) {
        uint8_t byte = *span->at++;
        *value |= (uint64_t)(byte & (VARINT_MORE - 1)) << shift;
        if (!(byte & VARINT_MORE)) return true;
    }
    return false;
}

bool span_skip(struct span *span, uint64_t size, struct span *skipped) {
    if (size > (uint64_t)(span->end - span->at)) return false;
    *skipped = (struct span){span->at, span->at + size};
    span->at += size;
    return true;
}

bool span_field(struct span *span, struct field *field) {
    uint64_t tag;
    if (!span_varint(span, &tag)) return false;
    *field = (struct field){.number = (uint32_t)(tag >> WIRE_BITS)};
    switch (tag & ((1u << WIRE_BITS) - 1)) {
    case WIRE_VARINT:
        return span_varint(span, &field->value);
    case WIRE_BYTES:
        field->is_bytes = true;
        return span_varint(span, &field->value) && span_skip(span, field->value, &field->bytes);
    case WIRE_EIGHT:
        return span_skip(span, EIGHT_BYTES, &field->bytes);
    case WIRE_FOUR:
        return span_skip(span, FOUR_BYTES, &field->bytes);
    default:
        return false;
    }
}

bool span_integers(struct span span, uint64_t *values, uint32_t count) {
    struct field field;
    while (span.at < span.end) {
        if (!span_field(&span, &field)) return false;
        if (field.number < count && !field.is_bytes) values[field.number] = field.value;
    }
    return true;
}

char *span_text(struct span span) {
    return strndup((const char *)span.at, (size_t)(span.end - span.at));
}

uint8_t *span_load(FILE *in, struct span *message) {
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0;
    for (size_t count = 1; count;) {
        if (room - size < CHUNK_BYTES) {
            room = room ? room * 2 : CHUNK_BYTES;
            uint8_t *grown = size < MESSAGE_MAX ? realloc(bytes, room) : NULL;
            if (!grown) {
                free(bytes);
                return NULL;
            }
            bytes = grown;
        }
        count = fread(bytes + size, 1, room - size, in);
        size += count;
    }
    *message = (struct span){bytes, bytes + size};
    return bytes;
}
