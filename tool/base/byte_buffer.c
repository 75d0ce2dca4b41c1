// SPDX-License-Identifier: Apache-2.0
#include "tool/base/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256, BYTE_BITS = 8 };

bool byte_buffer_reserve(struct byte_buffer *buffer, size_t size) {
    if (buffer->capacity - buffer->size >= size) return true;
    size_t wanted = buffer->capacity ? buffer->capacity * 2 : FIRST_CAPACITY;
    if (wanted < buffer->size + size) wanted = buffer->size + size;
    uint8_t *grown = realloc(buffer->bytes, wanted);
    if (!grown) {
        buffer->has_failed = true;
        return false;
    }
    buffer->bytes = grown;
    buffer->capacity = wanted;
    return true;
}

void byte_buffer_free(struct byte_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct byte_buffer){0};
}

void byte_buffer_put(struct byte_buffer *buffer, const void *bytes, size_t size) {
    if (!size || !byte_buffer_reserve(buffer, size)) return;
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

void byte_buffer_put_number(struct byte_buffer *buffer, uint64_t value, size_t size) {
    if (!byte_buffer_reserve(buffer, size)) return;
    for (size_t i = 0; i < size; i++, value >>= BYTE_BITS)
        buffer->bytes[buffer->size++] = (uint8_t)value;
}
