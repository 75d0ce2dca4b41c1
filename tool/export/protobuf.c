// SPDX-License-Identifier: Apache-2.0
#include "tool/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, TAG_SHIFT = 3 };
enum { VARINT_MAX = 10, VARINT_BITS = 7, VARINT_MORE = 0x80, FIRST_CAPACITY = 256 };

static bool make_room(struct message *message, size_t size) {
    if (message->capacity - message->size >= size) return true;
    size_t wanted = message->capacity ? message->capacity * 2 : FIRST_CAPACITY;
    if (wanted < message->size + size) wanted = message->size + size;
    uint8_t *grown = realloc(message->bytes, wanted);
    if (!grown) {
        message->has_failed = true;
        return false;
    }
    message->bytes = grown;
    message->capacity = wanted;
    return true;
}

static size_t encode(uint64_t value, uint8_t out[VARINT_MAX]) {
    size_t size = 0;
    for (; value >= VARINT_MORE; value >>= VARINT_BITS)
        out[size++] = (uint8_t)(value & (VARINT_MORE - 1)) | VARINT_MORE;
    out[size++] = (uint8_t)value;
    return size;
}

void message_put_bare(struct message *message, uint64_t value) {
    if (make_room(message, VARINT_MAX))
        message->size += encode(value, message->bytes + message->size);
}

void message_put(struct message *message, unsigned field, uint64_t value) {
    if (!value) return;
    message_put_bare(message, field << TAG_SHIFT | WIRE_VARINT);
    message_put_bare(message, value);
}

void message_put_bytes(struct message *message, unsigned field, const void *bytes, size_t size) {
    message_put_bare(message, field << TAG_SHIFT | WIRE_BYTES);
    message_put_bare(message, size);
    if (!size || !make_room(message, size)) return;
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
}

void message_put_message(struct message *outer, unsigned field, struct message *inner) {
    message_put_bytes(outer, field, inner->bytes, inner->size);
    outer->has_failed |= inner->has_failed;
    inner->size = 0;
}

static void write_varint(FILE *out, uint64_t value) {
    uint8_t bytes[VARINT_MAX];
    fwrite(bytes, 1, encode(value, bytes), out);
}

void message_write_bytes(FILE *out, unsigned field, const void *bytes, size_t size) {
    write_varint(out, field << TAG_SHIFT | WIRE_BYTES);
    write_varint(out, size);
    if (size) fwrite(bytes, 1, size, out);
}

void message_write(FILE *out, unsigned field, struct message *message) {
    message_write_bytes(out, field, message->bytes, message->size);
    message->size = 0;
}

void message_write_integer(FILE *out, unsigned field, uint64_t value) {
    if (!value) return;
    write_varint(out, field << TAG_SHIFT | WIRE_VARINT);
    write_varint(out, value);
}

void message_free(struct message *message) {
    free(message->bytes);
    *message = (struct message){0};
}
