// SPDX-License-Identifier: Apache-2.0
#include "tool/events/columns.h"

#include "tool/events/chunk.h"

enum { NUMBER_BITS = 7, NUMBER_MORE = 1 << NUMBER_BITS, NUMBER_BYTES = 10 };
enum { EVENT_NUMBERS_MOST = 4 };  // of one event in one column

void columns_begin(struct columns *columns, uint64_t start_ms) {
    coder_begin(&columns->coder, start_ms, false);
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) columns->planes[i][j].count = 0;
    columns->end_ms = start_ms;
    columns->event_count = columns->sure_count = 0;
}

static void put(struct columns *columns, enum cairn_event_column which, uint64_t number) {
    struct plane *plane = columns->planes[which];
    const struct plane *last = plane + CAIRN_EVENT_PLANES - 1;
    for (; number >= NUMBER_MORE; number >>= NUMBER_BITS) {
        plane->bytes[plane->count++] = (uint8_t)(number | NUMBER_MORE);
        plane += plane < last;
    }
    plane->bytes[plane->count++] = (uint8_t)number;
}

// So many events have room, whatever they are: a look at all planes for each event would take
// longer than its numbers.
static uint32_t count_sure(const struct columns *columns) {
    const size_t most = (size_t)EVENT_NUMBERS_MOST * NUMBER_BYTES;
    size_t least = sizeof columns->planes[0][0].bytes;
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) {
            size_t left = sizeof columns->planes[i][j].bytes - columns->planes[i][j].count;
            if (left < least) least = left;
        }
    return (uint32_t)(least / most);
}

static bool has_room(struct columns *columns) {
    if (!columns->sure_count) columns->sure_count = count_sure(columns);
    if (!columns->sure_count) return false;
    columns->sure_count--;
    return true;
}

static bool has_cell(const struct event *event) {
    return event_kind(event) == CAIRN_EVENT_ALLOC || event_kind(event) == CAIRN_EVENT_MAP ||
           event_is_look(event);
}

static bool has_size(const struct event *event) {
    return has_cell(event) || event_kind(event) == CAIRN_EVENT_UNMAP;
}

static void put_time(struct columns *columns, uint64_t ms) {
    const struct event time = {.flags = CAIRN_EVENT_TIME, .ms = ms};
    put(columns, CAIRN_COLUMN_KINDS, CAIRN_EVENT_TIME);
    put(columns, CAIRN_COLUMN_OTHERS, ms - columns->coder.ms);
    coder_note(&columns->coder, &time);
    columns->end_ms = ms;
}

bool columns_add(struct columns *columns, const struct event *event) {
    const struct coder *coder = &columns->coder;
    if (!has_room(columns)) return false;
    if (event->ms > coder->ms) put_time(columns, event->ms);
    if (event_kind(event) == CAIRN_EVENT_TIME) return true;
    put(columns, CAIRN_COLUMN_KINDS, event->flags);
    if (has_cell(event)) put(columns, CAIRN_COLUMN_CELLS, coder_cell_code(coder, event->cell));
    if (has_size(event)) put(columns, CAIRN_COLUMN_SIZES, coder_size_code(coder, event));
    put(columns, CAIRN_COLUMN_ADDRESSES, coder_address_code(coder, event, event->address));
    if (event->flags & CAIRN_EVENT_TURN)
        put(columns, CAIRN_COLUMN_OTHERS, coder_turn_code(coder, event));
    if (event->flags & CAIRN_EVENT_ALIGNED) put(columns, CAIRN_COLUMN_OTHERS, event->alignment);
    if (event->flags & CAIRN_EVENT_MOVED)
        put(columns, CAIRN_COLUMN_OTHERS, coder_taken_code(coder, event->taken));
    coder_note(&columns->coder, event);
    columns->event_count++;
    return true;
}

// --- read

void columns_read(struct columns_reader *reader, const struct cairn_event_frame *frame,
                  const uint8_t *bytes, bool is_plain) {
    coder_begin(&reader->coder, frame->start_ms, is_plain);
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) {
            reader->planes[i][j].at = bytes;
            bytes += frame->planes[i][j].plain_bytes;
            reader->planes[i][j].end = bytes;
        }
    reader->slot = frame->slot;
    reader->thread = frame->thread;
    reader->left = frame->event_count;
}

static bool get(struct columns_reader *reader, enum cairn_event_column which, uint64_t *number) {
    struct plane_reader *plane = reader->planes[which];
    const struct plane_reader *last = plane + (reader->coder.is_plain ? 0 : CAIRN_EVENT_PLANES - 1);
    unsigned shift = 0;
    *number = 0;
    for (int i = 0; i < NUMBER_BYTES && plane->at < plane->end; i++, shift += NUMBER_BITS) {
        uint8_t byte = *plane->at++;
        *number |= (uint64_t)(byte & (NUMBER_MORE - 1)) << shift;
        if (!(byte & NUMBER_MORE)) return true;
        plane += plane < last;
    }
    return false;
}

static bool read_time(struct columns_reader *reader) {
    struct event time = {.flags = CAIRN_EVENT_TIME};
    uint64_t later;
    if (!get(reader, CAIRN_COLUMN_OTHERS, &later)) return false;
    time.ms = reader->coder.ms + later;
    coder_note(&reader->coder, &time);
    return true;
}

static bool read_event(struct columns_reader *reader, struct event *event) {
    const struct coder *coder = &reader->coder;
    uint64_t code;
    if (has_cell(event)) {
        if (!get(reader, CAIRN_COLUMN_CELLS, &code)) return false;
        event->cell = coder_cell(coder, code);
    }
    if (has_size(event)) {
        if (!get(reader, CAIRN_COLUMN_SIZES, &code)) return false;
        event->size = coder_size(coder, event, code);
        if (event->size > EVENT_BYTES_MOST) return false;
    }
    if (!get(reader, CAIRN_COLUMN_ADDRESSES, &code)) return false;
    event->address = coder_address(coder, event, code);
    if (event->flags & CAIRN_EVENT_TURN) {
        if (!get(reader, CAIRN_COLUMN_OTHERS, &code)) return false;
        event->turn = coder_turn(coder, event, code);
    }
    if (event->flags & CAIRN_EVENT_ALIGNED && !get(reader, CAIRN_COLUMN_OTHERS, &event->alignment))
        return false;
    if (event->flags & CAIRN_EVENT_MOVED) {
        if (!get(reader, CAIRN_COLUMN_OTHERS, &code)) return false;
        event->taken = coder_taken(coder, code);
    }
    return true;
}

int columns_next(struct columns_reader *reader, struct event *event) {
    uint64_t flags = 0;
    if (!reader->left) return 0;
    while (get(reader, CAIRN_COLUMN_KINDS, &flags) && flags == CAIRN_EVENT_TIME)
        if (!read_time(reader)) return -1;
    if (flags > UINT32_MAX || !event_is_possible((uint32_t)flags) || flags == CAIRN_EVENT_TIME)
        return -1;
    *event = (struct event){.flags = (uint32_t)flags,
                            .ms = reader->coder.ms,
                            .slot = reader->slot,
                            .thread = reader->thread};
    if (!read_event(reader, event)) return -1;
    coder_note(&reader->coder, event);
    reader->left--;
    return 1;
}
