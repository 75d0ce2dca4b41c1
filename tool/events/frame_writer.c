// SPDX-License-Identifier: Apache-2.0
#include "tool/events/frame_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "tool/events/chunk.h"
#include "tool/events/columns.h"

enum { LEVEL = 1, PAYLOAD_MOST = CAIRN_COLUMNS * (CAIRN_EVENT_COLUMN_MOST + 4096) };

struct frame_writer {
    int file;
    uint64_t at;
    struct cairn_event_end end;
    struct error problem;  // the first
    ZSTD_CCtx *zstd;
    struct columns columns;
    struct cairn_event_frame frame;
    uint8_t payload[PAYLOAD_MOST];  // behind the frame
};

static bool write_all(struct frame_writer *writer, const void *bytes, size_t count) {
    const char *from = bytes;
    uint64_t at = writer->at;
    while (count) {
        ssize_t done = pwrite(writer->file, from, count, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            if (!writer->problem.text[0])
                error_set(&writer->problem, "%s", done ? strerror(errno) : "no room");
            if (ftruncate(writer->file, (off_t)writer->at) != 0) return false;  // a cut log
            return false;
        }
        from += done;
        at += (uint64_t)done;
        count -= (size_t)done;
    }
    writer->at = at;
    return true;
}

struct frame_writer *frame_writer_open(const char *path, const struct cairn_event_file *header,
                                       struct error *error) {
    struct frame_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        error_set(error, "out of memory");
        return NULL;
    }
    writer->zstd = ZSTD_createCCtx();
    writer->file = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writer->file >= 0 && writer->zstd && write_all(writer, header, sizeof *header))
        return writer;
    error_set(error, "%s: %s", path, writer->zstd ? strerror(errno) : "out of memory");
    if (writer->file >= 0) close(writer->file);
    ZSTD_freeCCtx(writer->zstd);
    free(writer);
    return NULL;
}

static uint32_t checksum(const void *behind, size_t bytes) {
    return (uint32_t)crc32(0, behind, (uInt)bytes);
}

// Compresses the columns into the payload; its bytes.
static size_t pack(struct frame_writer *writer) {
    size_t used = 0;
    for (int i = 0; i < CAIRN_COLUMNS; i++) {
        const struct column *column = &writer->columns.columns[i];
        size_t stored = ZSTD_compressCCtx(writer->zstd, writer->payload + used, PAYLOAD_MOST - used,
                                          column->bytes, column->count, LEVEL);
        if (ZSTD_isError(stored) || stored >= column->count) {
            stored = column->count;
            memcpy(writer->payload + used, column->bytes, stored);
        }
        writer->frame.columns[i].plain_bytes = (uint32_t)column->count;
        writer->frame.columns[i].stored_bytes = (uint32_t)stored;
        used += stored;
    }
    return used;
}

static bool write_frame(struct frame_writer *writer, const struct cairn_events_chunk *chunk) {
    struct cairn_event_frame *frame = &writer->frame;
    const size_t behind = offsetof(struct cairn_event_frame, slot);
    *frame = (struct cairn_event_frame){.magic = CAIRN_EVENT_FRAME_MAGIC,
                                        .slot = chunk->slot,
                                        .thread = chunk->thread,
                                        .number = chunk->number,
                                        .event_count = writer->columns.event_count,
                                        .start_ms = chunk->start_ms,
                                        .end_ms = writer->columns.end_ms};
    size_t bytes = pack(writer);
    frame->checksum = checksum((const uint8_t *)frame + behind, sizeof *frame - behind + bytes);
    if (!write_all(writer, frame, sizeof *frame + bytes)) return false;
    writer->end.frame_count++;
    writer->end.event_count += frame->event_count;
    return true;
}

bool frame_writer_add(struct frame_writer *writer, const struct cairn_events_chunk *chunk,
                      const uint64_t *words, size_t word_count) {
    struct chunk_reader reader = chunk_read(words, word_count, chunk->start_ms);
    struct event event;
    columns_begin(&writer->columns, chunk->start_ms);
    while (chunk_next(&reader, &event) && columns_add(&writer->columns, &event)) {
    }
    if (!writer->columns.event_count) return true;
    if (reader.is_damaged && !writer->problem.text[0])
        error_set(&writer->problem, "the process damaged its event log");
    bool is_written = write_frame(writer, chunk);
    writer->end.lost_frames += !is_written || reader.is_damaged;
    return is_written;
}

uint64_t frame_writer_events(const struct frame_writer *writer) {
    return writer->end.event_count;
}

bool frame_writer_close(struct frame_writer *writer, const struct cairn_events *events,
                        struct error *error) {
    const size_t behind = offsetof(struct cairn_event_end, frame_count);
    struct cairn_event_end *end = &writer->end;
    end->magic = CAIRN_EVENT_END_MAGIC;
    if (events) {
        end->lost_chunks = events->lost_chunks;
        end->lost_events = events->lost_events;
        end->waited_ns = events->waited_ns;
    }
    end->checksum = checksum((const uint8_t *)end + behind, sizeof *end - behind);
    write_all(writer, end, sizeof *end);
    bool is_good = !writer->problem.text[0];
    if (!is_good) *error = writer->problem;
    close(writer->file);
    ZSTD_freeCCtx(writer->zstd);
    free(writer);
    return is_good;
}
