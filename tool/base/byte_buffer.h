// SPDX-License-Identifier: Apache-2.0
// Bytes that grow, for formats that want the length of a part in front of it: Protocol Buffers
// (protobuf.h) and Parquet (parquet_file.h).
#ifndef TOOL_BASE_BYTE_BUFFER_H
#define TOOL_BASE_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct byte_buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool has_failed;  // there was no memory: what is in it means nothing
};

// Room for `size` more bytes; false without memory.
bool byte_buffer_reserve(struct byte_buffer *buffer, size_t size);
void byte_buffer_free(struct byte_buffer *buffer);

void byte_buffer_put(struct byte_buffer *buffer, const void *bytes, size_t size);
// A number of 1 to 8 bytes, lowest byte first.
void byte_buffer_put_number(struct byte_buffer *buffer, uint64_t value, size_t size);

// Seven bits a byte, the lowest first, the highest bit of a byte says that more follow.
#define VARINT_BYTES_MAX 10
static inline size_t varint_encode(uint64_t value, uint8_t out[VARINT_BYTES_MAX]) {
    enum { BITS = 7, MORE = 0x80 };
    size_t size = 0;
    for (; value >= MORE; value >>= BITS) out[size++] = (uint8_t)(value | MORE);
    out[size++] = (uint8_t)value;
    return size;
}

static inline void byte_buffer_put_varint(struct byte_buffer *buffer, uint64_t value) {
    bool has_room = buffer->capacity - buffer->size >= VARINT_BYTES_MAX;
    if (has_room || byte_buffer_reserve(buffer, VARINT_BYTES_MAX))
        buffer->size += varint_encode(value, buffer->bytes + buffer->size);
}

#endif
