// SPDX-License-Identifier: Apache-2.0
// The file may be anything, and may still grow: it is read by pread, and every length is checked
// against the file's, or what a column can have.
#include "tool/events/frame_index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "tool/base/array.h"
#include "tool/base/file_bytes.h"

// --- frames of either version

static bool is_plain(const struct frame_index *index) {
    return index->facts.file.version == CAIRN_EVENT_FILE_VERSION_PLAIN;
}

static size_t head_bytes(const struct frame_index *index) {
    return is_plain(index) ? CAIRN_EVENT_FRAME_PLAIN_BYTES : sizeof(struct cairn_event_frame);
}

// `bytes` of a frame's beginning; of an older one each column's first plane is all of it.
static struct cairn_event_frame frame_of(const struct frame_index *index, const void *bytes) {
    struct cairn_event_frame frame = {0};
    memcpy(&frame, bytes, head_bytes(index));
    if (!is_plain(index)) return frame;
    struct cairn_event_plane columns[CAIRN_COLUMNS];
    memcpy(columns, frame.planes, sizeof columns);
    memset(frame.planes, 0, sizeof frame.planes);
    for (int i = 0; i < CAIRN_COLUMNS; i++) frame.planes[i][0] = columns[i];
    return frame;
}

static bool read_head(const struct frame_index *index, uint64_t at,
                      struct cairn_event_frame *frame) {
    uint8_t bytes[sizeof *frame] = {0};
    if (!file_read_at(index->file, bytes, head_bytes(index), at)) return false;
    *frame = frame_of(index, bytes);
    return true;
}

static uint64_t payload_bytes(const struct cairn_event_frame *frame) {
    uint64_t bytes = 0;
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) bytes += frame->planes[i][j].stored_bytes;
    return bytes;
}

static bool is_frame(const struct cairn_event_frame *frame) {
    if (frame->magic != CAIRN_EVENT_FRAME_MAGIC || !frame->event_count) return false;
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++)
            if (frame->planes[i][j].plain_bytes > CAIRN_EVENT_COLUMN_MOST ||
                frame->planes[i][j].stored_bytes > frame->planes[i][j].plain_bytes)
                return false;
    return frame->event_count <= frame->planes[CAIRN_COLUMN_KINDS][0].plain_bytes;
}

static bool add_frame(struct frame_index *index, const struct cairn_event_frame *frame,
                      uint64_t at) {
    const size_t first_room = 64;
    if (index->count == index->room) {
        size_t room = index->room ? 2 * index->room : first_room;
        void *frames = reallocarray(index->frames, room, sizeof *index->frames);
        if (!frames) return false;
        index->frames = frames;
        index->room = room;
    }
    index->frames[index->count++] =
        (struct frame_place){at, frame->end_ms, frame->slot, frame->number, frame->event_count};
    index->facts.event_count += frame->event_count;
    if (frame->end_ms > index->facts.end_ms) index->facts.end_ms = frame->end_ms;
    return true;
}

static bool is_end(const struct cairn_event_end *end) {
    const size_t behind = offsetof(struct cairn_event_end, frame_count);
    uint32_t sum = (uint32_t)crc32(0, (const uint8_t *)end + behind, (uInt)(sizeof *end - behind));
    return end->magic == CAIRN_EVENT_END_MAGIC && end->checksum == sum;
}

// The frames from `at` to `end`, where the header says that there are some.
static bool walk_part(struct frame_index *index, uint64_t at, uint64_t end, struct error *error) {
    struct cairn_event_frame frame;
    while (at < end) {
        const size_t head = head_bytes(index);
        bool is_read = end - at >= head && read_head(index, at, &frame);
        if (!is_read || !is_frame(&frame) || payload_bytes(&frame) > end - at - head)
            return error_set(error, "damaged at byte %" PRIu64, at);
        if (!add_frame(index, &frame, at)) return error_set(error, "out of memory");
        at += head + payload_bytes(&frame);
    }
    return true;
}

static bool walk_ring(struct frame_index *index, struct error *error) {
    struct event_log_facts *facts = &index->facts;
    const struct cairn_event_file *file = &facts->file;
    const uint64_t start = file->header_bytes;
    if (file->ring_first < file->ring_low || file->ring_first > file->ring_high ||
        file->ring_low < start || file->ring_high > facts->file_bytes)
        return error_set(error, "its header is damaged");
    if (!walk_part(index, file->ring_first, file->ring_high, error) ||
        !walk_part(index, start, file->ring_low, error))
        return false;
    facts->is_cut = !file_read_at(index->file, &facts->end, sizeof facts->end, file->ring_high) ||
                    !is_end(&facts->end);
    if (facts->is_cut) facts->end = (struct cairn_event_end){0};
    return true;
}

// False: what is at `at` is neither a frame nor an end, and more than the rest of one.
static bool walk(struct frame_index *index, uint64_t at, struct error *error) {
    struct event_log_facts *facts = &index->facts;
    struct cairn_event_frame frame;
    if (facts->file.ring_bytes) return walk_ring(index, error);
    facts->is_cut = true;
    for (uint64_t next; at < facts->file_bytes; at = next) {
        uint32_t magic;
        if (facts->file_bytes - at < sizeof magic ||
            !file_read_at(index->file, &magic, sizeof magic, at))
            return true;
        if (magic == CAIRN_EVENT_END_MAGIC) {
            if (!file_read_at(index->file, &facts->end, sizeof facts->end, at)) return true;
            facts->is_cut = !is_end(&facts->end);
            return !facts->is_cut || error_set(error, "its end is damaged");
        }
        if (facts->file_bytes - at < head_bytes(index) || !read_head(index, at, &frame))
            return true;
        if (!is_frame(&frame)) return error_set(error, "damaged at byte %" PRIu64, at);
        next = at + head_bytes(index) + payload_bytes(&frame);
        if (next > facts->file_bytes) return true;
        if (!add_frame(index, &frame, at)) return error_set(error, "out of memory");
    }
    return true;
}

static int by_slot_and_number(const void *left, const void *right) {
    const struct frame_place *a = left, *b = right;
    if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

// Of a ring: the moment from which on it has what all threads did. Frames before it, of threads
// whose older ones lie in the ring by chance, are left out.
static void begin_together(struct frame_index *index) {
    struct event_log_facts *facts = &index->facts;
    const uint64_t begin_ms = facts->file.left_end_ms;
    size_t kept = 0;
    if (!facts->file.left_frames) return;
    for (size_t i = 0; i < index->count; i++) {
        const struct frame_place frame = index->frames[i];
        if (frame.end_ms >= begin_ms) {
            index->frames[kept++] = frame;
            continue;
        }
        facts->file.left_frames++;
        facts->file.left_events += frame.event_count;
        facts->event_count -= frame.event_count;
    }
    index->count = kept;
    if (begin_ms > facts->file.begin_ms) facts->file.begin_ms = begin_ms;
}

// By the end, which knows how many there were, more may be missing than numbers tell: the last ones
// of a slot.
static void count_missing_last(struct frame_index *index) {
    struct event_log_facts *facts = &index->facts;
    const struct cairn_event_end *end = &facts->end;
    if (facts->is_cut || facts->file.ring_bytes || end->frame_count <= index->count) return;
    uint64_t missing = end->lost_chunks + end->lost_frames + (end->frame_count - index->count);
    if (missing > facts->missing_count) facts->missing_count = missing;
}

static void count_missing(struct frame_index *index) {
    for (size_t i = 0; i < index->count; i++) {
        const struct frame_place *frame = &index->frames[i];
        bool is_first = i == 0 || frame[-1].slot != frame->slot;
        uint32_t expected = is_first ? 0 : frame[-1].number + 1;
        if (is_first && index->facts.file.left_frames) continue;
        if (frame->number > expected) index->facts.missing_count += frame->number - expected;
    }
    count_missing_last(index);
}

static bool read_header(struct frame_index *index, struct error *error) {
    struct cairn_event_file *header = &index->facts.file;
    struct stat status;
    if (fstat(index->file, &status) != 0) return error_set(error, "%s", strerror(errno));
    index->facts.file_bytes = (uint64_t)status.st_size;
    size_t least = CAIRN_EVENT_FILE_LEAST;
    if (!file_read_at(index->file, header, least, 0) ||
        memcmp(header->magic, CAIRN_EVENT_FILE_MAGIC, sizeof header->magic) != 0)
        return error_set(error, "not an event log");
    if (header->version != CAIRN_EVENT_FILE_VERSION && !is_plain(index))
        return error_set(error, "an event log of version %u, and this cairn reads version 1 to %u",
                         header->version, CAIRN_EVENT_FILE_VERSION);
    if (header->header_bytes < least || header->granule_shift > 16 || header->turn_bits > 63)
        return error_set(error, "its header is damaged");
    const size_t known =
        header->header_bytes < sizeof *header ? header->header_bytes : sizeof *header;
    if (known > least && !file_read_at(index->file, header, known, 0))
        return error_set(error, "it was cut in its header");
    header->recording[CAIRN_EVENT_FILE_NAME - 1] = 0;
    header->recording_in_run[CAIRN_EVENT_FILE_NAME - 1] = 0;
    header->directory[CAIRN_EVENT_FILE_DIRECTORY - 1] = 0;
    return true;
}

bool frame_index_open(const char *path, struct frame_index *index, struct error *error) {
    *index = (struct frame_index){.file = open(path, O_RDONLY | O_CLOEXEC)};
    if (index->file < 0) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_read = read_header(index, error) && walk(index, index->facts.file.header_bytes, error);
    if (!is_read) {
        frame_index_close(index);
        return error_wrap(error, "%s", path);
    }
    if (index->count) qsort(index->frames, index->count, sizeof *index->frames, by_slot_and_number);
    begin_together(index);
    count_missing(index);
    return true;
}

void frame_index_close(struct frame_index *index) {
    if (index->file >= 0) close(index->file);
    free(index->frames);
    *index = (struct frame_index){.file = -1};
}

// --- one frame

void frame_columns_free(struct frame_columns *columns) {
    free(columns->bytes);
    columns->bytes = NULL;
}

static uint8_t *unpack_plane(uint8_t *to, size_t plain, const uint8_t *from, size_t stored) {
    if (plain == stored)
        memcpy(to, from, plain);
    else if (ZSTD_decompress(to, plain, from, stored) != plain)
        return NULL;
    return to + plain;
}

static bool unpack(const struct cairn_event_frame *frame, const uint8_t *payload,
                   struct frame_columns *columns) {
    size_t bytes = 1;
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) bytes += frame->planes[i][j].plain_bytes;
    uint8_t *to = columns->bytes = malloc(bytes);
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; to && j < CAIRN_EVENT_PLANES; j++) {
            const size_t stored = frame->planes[i][j].stored_bytes;
            to = unpack_plane(to, frame->planes[i][j].plain_bytes, payload, stored);
            payload += stored;
        }
    return to;
}

static bool read_frame(const struct frame_index *index, uint64_t at, uint8_t *bytes, size_t count,
                       struct frame_columns *columns) {
    const size_t behind = offsetof(struct cairn_event_frame, slot), head = head_bytes(index);
    if (!file_read_at(index->file, bytes, count, at)) return false;
    const struct cairn_event_frame frame = frame_of(index, bytes);
    if ((uint32_t)crc32(0, bytes + behind, (uInt)(count - behind)) != frame.checksum) return false;
    if (!is_frame(&frame) || payload_bytes(&frame) != count - head) return false;
    if (!unpack(&frame, bytes + head, columns)) return false;
    columns_read(&columns->reader, &frame, columns->bytes, is_plain(index));
    return true;
}

bool frame_index_read(const struct frame_index *index, const struct frame_place *place,
                      struct frame_columns *columns, struct error *error) {
    struct cairn_event_frame frame;
    bool is_read = read_head(index, place->at, &frame) && is_frame(&frame);
    size_t count = is_read ? head_bytes(index) + (size_t)payload_bytes(&frame) : 0;
    uint8_t *bytes = is_read ? malloc(count) : NULL;
    columns->bytes = NULL;
    is_read = bytes && read_frame(index, place->at, bytes, count, columns);
    free(bytes);
    if (is_read) return true;
    frame_columns_free(columns);
    return error_set(error, "the frame at byte %" PRIu64 " is damaged", place->at);
}
