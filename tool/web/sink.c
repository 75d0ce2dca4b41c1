// SPDX-License-Identifier: Apache-2.0
#include "tool/web/sink.h"

#include <string.h>

enum { NAME_MAX_BYTES = 255 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_triple(FILE *out, const uint8_t bytes[3], size_t count) {
    const unsigned low = 0x3f;
    unsigned bits = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];
    fputc_unlocked(letters[bits >> 18], out);
    fputc_unlocked(letters[bits >> 12 & low], out);
    fputc_unlocked(count > 1 ? letters[bits >> 6 & low] : '=', out);
    fputc_unlocked(count > 2 ? letters[bits & low] : '=', out);
}

static void put_base64(struct sink *sink, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        sink->carried[sink->carried_count++] = bytes[i];
        if (sink->carried_count < sizeof sink->carried) continue;
        put_triple(sink->out, sink->carried, sink->carried_count);
        sink->carried_count = 0;
    }
}

static void end_base64(struct sink *sink) {
    if (!sink->carried_count) return;
    memset(sink->carried + sink->carried_count, 0, sizeof sink->carried - sink->carried_count);
    put_triple(sink->out, sink->carried, sink->carried_count);
    sink->carried_count = 0;
}

static void compress_bytes(struct sink *sink, const void *bytes, size_t size, int flush) {
    int result = Z_OK;
    sink->stream.next_in = (Bytef *)bytes;
    while (!sink->is_squashed && result != Z_STREAM_END) {
        if (!sink->stream.avail_in && size) {
            uInt part = size < SINK_BUFFER_BYTES ? (uInt)size : SINK_BUFFER_BYTES;
            sink->stream.avail_in = part;
            size -= part;
        }
        sink->stream.next_out = sink->buffer;
        sink->stream.avail_out = sizeof sink->buffer;
        result = deflate(&sink->stream, size ? Z_NO_FLUSH : flush);
        sink->is_squashed = result == Z_STREAM_ERROR;
        put_base64(sink, sink->buffer, sizeof sink->buffer - sink->stream.avail_out);
        if (flush == Z_NO_FLUSH && !size && !sink->stream.avail_in) break;
    }
}

static void compress_block(void *context, const void *bytes, size_t size) {
    compress_bytes(context, bytes, size, Z_NO_FLUSH);
}

bool sink_open(struct sink *sink, FILE *out, struct error *error) {
    memset(sink, 0, sizeof *sink);
    sink->out = out;
    bool is_ready = deflateInit(&sink->stream, Z_DEFAULT_COMPRESSION) == Z_OK;
    if (is_ready && behind_start(&sink->behind, compress_block, sink)) return true;
    if (is_ready) deflateEnd(&sink->stream);
    sink->is_bad = true;
    return error_set(error, "no memory to compress the page's data");
}

bool sink_close(struct sink *sink, struct error *error) {
    const uint8_t end = 0;
    if (!sink->behind.work) return error_set(error, "no memory to compress the page's data");
    behind_end(&sink->behind);
    compress_bytes(sink, &end, sizeof end, Z_FINISH);
    end_base64(sink);
    deflateEnd(&sink->stream);
    return (!sink->is_bad && !sink->is_squashed) ||
           error_set(error, "no memory to compress the page's data");
}

void sink_put_chunk(struct sink *sink, const char *name, enum web_chunk_kind kind,
                    const void *bytes, size_t size) {
    size_t length = strlen(name);
    if (length > NAME_MAX_BYTES || size > UINT32_MAX || !sink->behind.work) {
        sink->is_bad = true;
        return;
    }
    const uint8_t prefix = (uint8_t)length;
    const uint8_t suffix[] = {(uint8_t)kind, (uint8_t)size, (uint8_t)(size >> 8),
                              (uint8_t)(size >> 16), (uint8_t)(size >> 24)};
    behind_put(&sink->behind, &prefix, sizeof prefix);
    behind_put(&sink->behind, name, length);
    behind_put(&sink->behind, suffix, sizeof suffix);
    behind_put(&sink->behind, bytes, size);
}

static void put_byte(struct column *column, uint8_t byte) {
    uint8_t *slot = column->is_bad ? NULL : array_push(&column->bytes);
    if (slot)
        *slot = byte;
    else
        column->is_bad = true;
}

void column_put_number(struct column *column, int64_t number) {
    enum { BITS = 7, MORE = 0x80 };
    uint64_t rest = (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
    for (; rest >= MORE; rest >>= BITS) put_byte(column, (uint8_t)(rest | MORE));
    put_byte(column, (uint8_t)rest);
}

void column_put_text(struct column *column, const char *text) {
    for (; *text; text++) put_byte(column, (uint8_t)*text);
    put_byte(column, 0);
}

void sink_put_column(struct sink *sink, const char *name, enum web_chunk_kind kind,
                     struct column *column) {
    if (column->is_bad)
        sink->is_bad = true;
    else
        sink_put_chunk(sink, name, kind, column->bytes.items, column->bytes.count);
    array_free(&column->bytes);
    *column = (struct column){0};
}
