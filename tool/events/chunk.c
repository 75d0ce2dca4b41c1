// SPDX-License-Identifier: Apache-2.0
#include "tool/events/chunk.h"

bool event_is_possible(uint32_t flags) {
    static const uint32_t possible[CAIRN_EVENT_KINDS] = {
        [CAIRN_EVENT_ALLOC] = CAIRN_EVENT_FLAGS & ~CAIRN_EVENT_UNSEEN,
        [CAIRN_EVENT_FREE] = CAIRN_EVENT_TURN | CAIRN_EVENT_UNSEEN,
        [CAIRN_EVENT_TAKE] = CAIRN_EVENT_TURN,
        [CAIRN_EVENT_BACK] = CAIRN_EVENT_TURN,
        [CAIRN_EVENT_MAP] = CAIRN_EVENT_TURN,
        [CAIRN_EVENT_UNMAP] = CAIRN_EVENT_TURN,
        [CAIRN_EVENT_RESIDENT] = 0,
        [CAIRN_EVENT_TOUCHED] = 0,
    };
    uint32_t kind = flags & CAIRN_EVENT_KIND_MASK;
    return kind != CAIRN_EVENT_NONE && kind < CAIRN_EVENT_KINDS &&
           !(flags & ~(possible[kind] | CAIRN_EVENT_KIND_MASK));
}

struct chunk_reader chunk_read(const uint64_t *words, size_t count, uint64_t start_ms) {
    return (struct chunk_reader){.words = words, .count = count, .ms = start_ms};
}

static uint64_t word(struct chunk_reader *reader) {
    if (reader->at >= reader->count) {
        reader->is_damaged = true;
        return 0;
    }
    return __atomic_load_n(&reader->words[reader->at++], __ATOMIC_RELAXED);
}

static void read_kind(struct chunk_reader *reader, struct event *event) {
    uint64_t both;
    switch (event_kind(event)) {
    case CAIRN_EVENT_ALLOC:
        both = word(reader);
        event->cell = (uint32_t)both;
        event->size = both >> 32;
        return;
    case CAIRN_EVENT_MAP:
    case CAIRN_EVENT_RESIDENT:
    case CAIRN_EVENT_TOUCHED:
        event->size = word(reader);
        event->cell = (uint32_t)word(reader);
        return;
    case CAIRN_EVENT_UNMAP:
        event->size = word(reader);
        return;
    case CAIRN_EVENT_TIME:
        if (event->address > reader->ms) reader->ms = event->address;
        event->address = 0;
        return;
    default:
        return;
    }
}

bool chunk_next(struct chunk_reader *reader, struct event *event) {
    if (reader->at >= reader->count || reader->is_damaged) return false;
    uint64_t first = __atomic_load_n(&reader->words[reader->at], __ATOMIC_ACQUIRE);
    if (!first) return false;
    reader->at++;
    *event = (struct event){.flags = first & ((1u << CAIRN_EVENT_ADDRESS_SHIFT) - 1),
                            .address = first >> CAIRN_EVENT_ADDRESS_SHIFT};
    if (!event_is_possible(event->flags)) reader->is_damaged = true;
    if (reader->is_damaged) return false;
    read_kind(reader, event);
    if (event->flags & CAIRN_EVENT_TURN) event->turn = (uint32_t)word(reader);
    if (event->flags & CAIRN_EVENT_LARGE) event->size = word(reader);
    if (event->flags & CAIRN_EVENT_ALIGNED) event->alignment = word(reader);
    if (event->flags & CAIRN_EVENT_MOVED) event->taken = word(reader);
    event->ms = reader->ms;
    reader->is_damaged |= event->size > EVENT_BYTES_MOST;
    event->flags &= ~CAIRN_EVENT_LARGE;
    return !reader->is_damaged;
}
