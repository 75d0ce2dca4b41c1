// SPDX-License-Identifier: Apache-2.0
#include "tool/web/sink.h"

#include <string.h>

enum { NAME_MAX_BYTES = 255, LETTERS = 4 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void write_triple(const uint8_t bytes[3], char out[LETTERS]) {
    const unsigned low = 0x3f;
    unsigned bits = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];
    out[0] = letters[bits >> 18];
    out[1] = letters[bits >> 12 & low];
    out[2] = letters[bits >> 6 & low];
    out[3] = letters[bits & low];
}

static void put_triples(struct sink *sink, const uint8_t *bytes, size_t triples) {
    enum { TRIPLES = 4096 };
    char text[TRIPLES * LETTERS];
    while (triples) {
        size_t part = triples < TRIPLES ? triples : TRIPLES;
        for (size_t i = 0; i < part; i++)
            write_triple(bytes + i * sizeof sink->carried, text + i * LETTERS);
        fwrite(text, LETTERS, part, sink->out);
        bytes += part * sizeof sink->carried;
        triples -= part;
    }
}

static void put_base64(void *context, const uint8_t *bytes, size_t size) {
    struct sink *sink = context;
    while (size && sink->carried_count) {
        sink->carried[sink->carried_count++] = *bytes++;
        size--;
        if (sink->carried_count < sizeof sink->carried) continue;
        put_triples(sink, sink->carried, 1);
        sink->carried_count = 0;
    }
    size_t rest = size % sizeof sink->carried;
    put_triples(sink, bytes, size / sizeof sink->carried);
    if (!rest) return;
    memcpy(sink->carried, bytes + size - rest, rest);
    sink->carried_count = rest;
}

static void end_base64(struct sink *sink) {
    char text[LETTERS];
    size_t count = sink->carried_count;
    if (!count) return;
    memset(sink->carried + count, 0, sizeof sink->carried - count);
    write_triple(sink->carried, text);
    memset(text + count + 1, '=', LETTERS - count - 1);
    fwrite(text, 1, sizeof text, sink->out);
    sink->carried_count = 0;
}

bool sink_open(struct sink *sink, FILE *out, struct error *error) {
    *sink = (struct sink){.out = out};
    sink->deflater = deflater_open(DEFLATER_ZLIB, 0, put_base64, sink);
    sink->is_bad = !sink->deflater;
    return !sink->is_bad || error_set(error, "no memory to compress the page's data");
}

bool sink_close(struct sink *sink, struct error *error) {
    const uint8_t end = 0;
    if (!sink->deflater) return error_set(error, "no memory to compress the page's data");
    deflater_put(sink->deflater, &end, sizeof end);
    bool is_whole = deflater_close(sink->deflater) && !sink->is_bad;
    sink->deflater = NULL;
    end_base64(sink);
    return is_whole || error_set(error, "no memory to compress the page's data");
}

void sink_put_chunk(struct sink *sink, const char *name, enum web_chunk_kind kind,
                    const void *bytes, size_t size) {
    size_t length = strlen(name);
    if (length > NAME_MAX_BYTES || size > UINT32_MAX || !sink->deflater) {
        sink->is_bad = true;
        return;
    }
    const uint8_t prefix = (uint8_t)length;
    const uint8_t suffix[] = {(uint8_t)kind, (uint8_t)size, (uint8_t)(size >> 8),
                              (uint8_t)(size >> 16), (uint8_t)(size >> 24)};
    deflater_put(sink->deflater, &prefix, sizeof prefix);
    deflater_put(sink->deflater, name, length);
    deflater_put(sink->deflater, suffix, sizeof suffix);
    deflater_put(sink->deflater, bytes, size);
}

void column_put_number(struct column *column, int64_t number) {
    byte_buffer_put_varint(&column->bytes, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

void column_put_text(struct column *column, const char *text) {
    byte_buffer_put(&column->bytes, text, strlen(text) + 1);
}

void sink_put_column(struct sink *sink, const char *name, enum web_chunk_kind kind,
                     struct column *column) {
    if (column->bytes.has_failed)
        sink->is_bad = true;
    else
        sink_put_chunk(sink, name, kind, column->bytes.bytes, column->bytes.size);
    byte_buffer_free(&column->bytes);
    *column = (struct column){0};
}
