// SPDX-License-Identifier: Apache-2.0
#include "tool/base/protobuf.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED = 1, WIRE_BYTES = 2, TAG_SHIFT = 3 };

void message_put_always(struct byte_buffer *message, unsigned field, uint64_t value) {
    message_put_bare(message, field << TAG_SHIFT | WIRE_VARINT);
    message_put_bare(message, value);
}

void message_put(struct byte_buffer *message, unsigned field, uint64_t value) {
    if (value) message_put_always(message, field, value);
}

void message_put_fixed(struct byte_buffer *message, unsigned field, uint64_t value) {
    message_put_bare(message, field << TAG_SHIFT | WIRE_FIXED);
    byte_buffer_put_number(message, value, sizeof value);
}

void message_put_double(struct byte_buffer *message, unsigned field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    message_put_fixed(message, field, bits);
}

void message_put_bytes(struct byte_buffer *message, unsigned field, const void *bytes,
                       size_t size) {
    message_put_bare(message, field << TAG_SHIFT | WIRE_BYTES);
    message_put_bare(message, size);
    byte_buffer_put(message, bytes, size);
}

void message_put_text(struct byte_buffer *message, unsigned field, const char *text) {
    message_put_bytes(message, field, text, strlen(text));
}

void message_put_message(struct byte_buffer *outer, unsigned field, struct byte_buffer *inner) {
    message_put_bytes(outer, field, inner->bytes, inner->size);
    outer->has_failed |= inner->has_failed;
    inner->size = 0;
}

static void write_varint(FILE *out, uint64_t value) {
    uint8_t bytes[VARINT_BYTES_MAX];
    fwrite(bytes, 1, varint_encode(value, bytes), out);
}

void message_write_bytes(FILE *out, unsigned field, const void *bytes, size_t size) {
    uint8_t head[2 * VARINT_BYTES_MAX];
    size_t tag_bytes = varint_encode(field << TAG_SHIFT | WIRE_BYTES, head);
    fwrite(head, 1, tag_bytes + varint_encode(size, head + tag_bytes), out);
    if (size) fwrite(bytes, 1, size, out);
}

void message_write(FILE *out, unsigned field, struct byte_buffer *message) {
    message_write_bytes(out, field, message->bytes, message->size);
    message->size = 0;
}

void message_write_integer(FILE *out, unsigned field, uint64_t value) {
    if (!value) return;
    write_varint(out, field << TAG_SHIFT | WIRE_VARINT);
    write_varint(out, value);
}
