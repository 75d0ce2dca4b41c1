// SPDX-License-Identifier: Apache-2.0
#include "tool/events/columns.h"

#include "tool/events/chunk.h"

enum { NUMBER_BITS = 7, NUMBER_MORE = 1 << NUMBER_BITS, NUMBER_BYTES = 10 };
enum { EVENT_NUMBERS_MOST = 4 };  // of one event in one column

void columns_begin(struct columns *columns, uint64_t start_ms) {
    coder_begin(&columns->coder, start_ms);
    for (int i = 0; i < CAIRN_COLUMNS; i++) columns->columns[i].count = 0;
    columns->end_ms = start_ms;
    columns->event_count = 0;
}

static void put(struct columns *columns, enum cairn_event_column which, uint64_t number) {
    struct column *column = &columns->columns[which];
    for (; number >= NUMBER_MORE; number >>= NUMBER_BITS)
        column->bytes[column->count++] = (uint8_t)(number | NUMBER_MORE);
    column->bytes[column->count++] = (uint8_t)number;
}

static bool has_cell(const struct event *event) {
    return event_kind(event) == CAIRN_EVENT_ALLOC || event_kind(event) == CAIRN_EVENT_MAP ||
           event_kind(event) == CAIRN_EVENT_RESIDENT;
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
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        if (columns->columns[i].count + (size_t)EVENT_NUMBERS_MOST * NUMBER_BYTES >
            sizeof columns->columns[i].bytes)
            return false;
    if (event->ms > coder->ms) put_time(columns, event->ms);
    if (event_kind(event) == CAIRN_EVENT_TIME) return true;
    put(columns, CAIRN_COLUMN_KINDS, event->flags);
    if (has_cell(event)) put(columns, CAIRN_COLUMN_CELLS, coder_cell_code(coder, event->cell));
    if (has_size(event)) put(columns, CAIRN_COLUMN_SIZES, coder_size_code(coder, event));
    put(columns, CAIRN_COLUMN_ADDRESSES, coder_address_code(coder, event, event->address));
    if (event->flags & CAIRN_EVENT_TURN) put(columns, CAIRN_COLUMN_OTHERS, event->turn);
    if (event->flags & CAIRN_EVENT_ALIGNED) put(columns, CAIRN_COLUMN_OTHERS, event->alignment);
    if (event->flags & CAIRN_EVENT_MOVED) put(columns, CAIRN_COLUMN_OTHERS, event->taken);
    coder_note(&columns->coder, event);
    columns->event_count++;
    return true;
}

// --- read

void columns_read(struct columns_reader *reader, const struct cairn_event_frame *frame,
                  uint8_t *const bytes[CAIRN_COLUMNS]) {
    coder_begin(&reader->coder, frame->start_ms);
    for (int i = 0; i < CAIRN_COLUMNS; i++) {
        reader->columns[i].at = bytes[i];
        reader->columns[i].end = bytes[i] + frame->columns[i].plain_bytes;
    }
    reader->slot = frame->slot;
    reader->thread = frame->thread;
    reader->left = frame->event_count;
}

static bool get(struct columns_reader *reader, enum cairn_event_column which, uint64_t *number) {
    const uint8_t **at = &reader->columns[which].at, *end = reader->columns[which].end;
    unsigned shift = 0;
    *number = 0;
    for (int i = 0; i < NUMBER_BYTES && *at < end; i++, shift += NUMBER_BITS) {
        uint8_t byte = *(*at)++;
        *number |= (uint64_t)(byte & (NUMBER_MORE - 1)) << shift;
        if (!(byte & NUMBER_MORE)) return true;
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
    bool is_read = true;
    if (event->flags & CAIRN_EVENT_TURN) is_read &= get(reader, CAIRN_COLUMN_OTHERS, &event->turn);
    if (event->flags & CAIRN_EVENT_ALIGNED)
        is_read &= get(reader, CAIRN_COLUMN_OTHERS, &event->alignment);
    if (event->flags & CAIRN_EVENT_MOVED)
        is_read &= get(reader, CAIRN_COLUMN_OTHERS, &event->taken);
    return is_read;
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
