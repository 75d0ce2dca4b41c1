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

#include "tool/base/array.h"
#include "tool/base/file_bytes.h"
#include "tool/events/chunk.h"
#include "tool/events/columns.h"

enum {
    LEVEL = 1,
    PAYLOAD_MOST = CAIRN_COLUMNS * CAIRN_EVENT_PLANES * (CAIRN_EVENT_COLUMN_MOST + 4096)
};

// A frame of the ring.
struct kept {
    uint64_t at, end_ms;
    uint32_t event_count;
};

struct frame_writer {
    int file;
    uint64_t at;
    struct cairn_event_file header;
    ARRAY(struct kept) kept;  // with ring_bytes: from `oldest` on, in the order in which they came
    size_t oldest;
    struct cairn_event_end end;
    struct error problem;  // the first
    ZSTD_CCtx *zstd;
    struct columns columns;
    struct cairn_event_frame frame;
    uint8_t payload[PAYLOAD_MOST];  // behind the frame
};

// What could not be written whole is taken away again: the file is that of a log that was cut.
static bool write_all(struct frame_writer *writer, const void *bytes, size_t count) {
    if (file_write_at(writer->file, bytes, count, writer->at)) {
        writer->at += count;
        return true;
    }
    if (!writer->problem.text[0]) error_set(&writer->problem, "%s", strerror(errno));
    // in a ring it is overwritten by the next one
    if (!writer->header.ring_bytes && ftruncate(writer->file, (off_t)writer->at) != 0)
        writer->end.lost_frames++;
    return false;
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
    writer->header = *header;
    const uint64_t first = header->header_bytes;
    writer->header.ring_first = writer->header.ring_high = writer->header.ring_low = first;
    if (writer->file >= 0 && writer->zstd && write_all(writer, &writer->header, first))
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

// One plane at `used` of the payload; its bytes there.
static size_t pack_plane(struct frame_writer *writer, const struct plane *plane, size_t used) {
    if (!plane->count) return 0;
    size_t stored = ZSTD_compressCCtx(writer->zstd, writer->payload + used, PAYLOAD_MOST - used,
                                      plane->bytes, plane->count, LEVEL);
    if (!ZSTD_isError(stored) && stored < plane->count) return stored;
    memcpy(writer->payload + used, plane->bytes, plane->count);
    return plane->count;
}

// Compresses the columns into the payload; its bytes.
static size_t pack(struct frame_writer *writer) {
    size_t used = 0;
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) {
            const struct plane *plane = &writer->columns.planes[i][j];
            size_t stored = pack_plane(writer, plane, used);
            writer->frame.planes[i][j].plain_bytes = (uint32_t)plane->count;
            writer->frame.planes[i][j].stored_bytes = (uint32_t)stored;
            used += stored;
        }
    return used;
}

// --- a ring

static bool is_wrapped(const struct frame_writer *writer) {
    return writer->header.ring_low > writer->header.header_bytes;
}

// The header says what is in the file: before something is overwritten, and after.
static bool write_header(struct frame_writer *writer) {
    const uint64_t at = writer->at;
    writer->at = 0;
    bool is_written = write_all(writer, &writer->header, writer->header.header_bytes);
    writer->at = at;
    return is_written;
}

static void leave_oldest(struct frame_writer *writer) {
    enum { FEW = 1024 };
    writer->header.left_frames++;
    const struct kept *oldest = &writer->kept.items[writer->oldest++];
    writer->header.left_events += oldest->event_count;
    if (oldest->end_ms > writer->header.left_end_ms) writer->header.left_end_ms = oldest->end_ms;
    if (writer->oldest < FEW || writer->oldest < writer->kept.count / 2) return;
    writer->kept.count -= writer->oldest;
    memmove(writer->kept.items, writer->kept.items + writer->oldest,
            writer->kept.count * sizeof *writer->kept.items);
    writer->oldest = 0;
}

// Leaves those of the older part that begin before `end`.
static void leave_before(struct frame_writer *writer, uint64_t end) {
    struct cairn_event_file *header = &writer->header;
    bool has_older = writer->oldest < writer->kept.count;
    while (has_older && header->ring_first < end) {
        leave_oldest(writer);
        has_older = writer->oldest < writer->kept.count &&
                    writer->kept.items[writer->oldest].at > header->ring_first;
        header->ring_first = has_older ? writer->kept.items[writer->oldest].at : header->ring_high;
    }
    if (has_older) return;
    // what was the newer part is all there is
    header->ring_first = header->header_bytes;
    header->ring_high = header->ring_low;
    header->ring_low = header->header_bytes;
}

// Where the next frame goes.
static void make_place(struct frame_writer *writer, size_t bytes) {
    struct cairn_event_file *header = &writer->header;
    const uint64_t limit = header->header_bytes + header->ring_bytes;
    writer->at = is_wrapped(writer) ? header->ring_low : header->ring_high;
    if (writer->at + bytes > limit) {
        if (is_wrapped(writer)) leave_before(writer, header->ring_high);
        writer->at = header->header_bytes;
        leave_before(writer, header->header_bytes + bytes);
        return;
    }
    if (is_wrapped(writer)) leave_before(writer, writer->at + bytes);
}

static bool write_in_ring(struct frame_writer *writer, const struct cairn_event_frame *frame,
                          size_t bytes) {
    struct cairn_event_file *header = &writer->header;
    if (bytes > header->ring_bytes) return false;
    if (!array_make_room((void **)&writer->kept.items, &writer->kept.capacity, writer->kept.count,
                         sizeof *writer->kept.items))
        return false;
    make_place(writer, bytes);
    const struct kept kept = {writer->at, frame->end_ms, frame->event_count};
    bool is_newer_part = writer->at != header->ring_high;
    if (!write_header(writer) || !write_all(writer, frame, bytes)) return false;
    writer->kept.items[writer->kept.count++] = kept;
    *(is_newer_part ? &header->ring_low : &header->ring_high) = writer->at;
    return write_header(writer);
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
    bool is_written = writer->header.ring_bytes
                          ? write_in_ring(writer, frame, sizeof *frame + bytes)
                          : write_all(writer, frame, sizeof *frame + bytes);
    if (!is_written) return false;
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
    if (writer->header.ring_bytes) {
        writer->at = writer->header.ring_high;
        end->left_frames = writer->header.left_frames;
        end->left_events = writer->header.left_events;
    }
    end->checksum = checksum((const uint8_t *)end + behind, sizeof *end - behind);
    write_all(writer, end, sizeof *end);
    if (ftruncate(writer->file, (off_t)writer->at) != 0) writer->end.lost_frames++;
    bool is_good = !writer->problem.text[0];
    if (!is_good) *error = writer->problem;
    close(writer->file);
    ZSTD_freeCCtx(writer->zstd);
    array_free(&writer->kept);
    free(writer);
    return is_good;
}
