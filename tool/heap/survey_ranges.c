// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/survey_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"

enum { PIECE_BYTES = 1 << 16 };

struct looked_areas {
    ARRAY(struct heap_area) items;
};

static const struct stopped_segment *segment_of(const struct stopped_image *live,
                                                uint64_t address) {
    size_t low;
    search_first(low, live->segments.count, live->segments.items[low].end > address);
    bool is_found = low < live->segments.count && live->segments.items[low].start <= address;
    return is_found ? &live->segments.items[low] : NULL;
}

static bool has_more_than_zeros(const uint8_t *bytes, size_t size) {
    return size && (*bytes || memcmp(bytes, bytes + 1, size - 1) != 0);
}

// Notes which pages of [start, end) have more than zeros in a core.
static bool note_written(const struct core_image *core, uint64_t start, uint64_t end,
                         uint64_t page_bytes, uint8_t *are_written) {
    uint64_t places = 0;
    uint8_t *scratch = malloc(PIECE_BYTES);
    for (uint64_t at = start; scratch && at < end;) {
        const uint8_t *bytes;
        const size_t most = end - at < PIECE_BYTES ? end - at : PIECE_BYTES;
        const size_t size = core_piece(core, at, scratch, most, &bytes);
        for (size_t done = 0; done < size;) {
            const uint64_t page = (at + done - start) / page_bytes;
            const uint64_t left = start + (page + 1) * page_bytes - (at + done);
            const size_t part = left < size - done ? left : size - done;
            if (has_more_than_zeros(bytes + done, part)) are_written[page] = 1;
            done += part;
        }
        core_place_done(core, size, &places);
        at = size ? at + size : start + ((at - start) / page_bytes + 1) * page_bytes;
    }
    free(scratch);
    return scratch != NULL;
}

// Adds one range and the area that it is of.
static bool add(struct survey_ranges *ranges, struct looked_areas *looked,
                const struct heap_area *area, const uint8_t *are_resident) {
    struct residency_range *range = array_push(&ranges->list);
    struct heap_area *slot = range ? array_push(&looked->items) : NULL;
    if (!slot) return false;
    *slot = *area;
    *range = (struct residency_range){area->start, area->end, are_resident};
    return true;
}

static bool add_of_core(const struct core_image *core, struct heap_area *area, size_t *page,
                        struct survey_ranges *ranges, struct looked_areas *looked) {
    const uint64_t page_bytes = core_page_bytes(core);
    uint8_t *are_written = ranges->are_written + *page;
    area->first_page = *page;
    *page += (area->end - area->start) / page_bytes;
    return note_written(core, area->start, area->end, page_bytes, are_written) &&
           add(ranges, looked, area, are_written);
}

// An area of a process is the part of it that was looked at: nothing else is known. Mappings that
// lie side by side are one each, since each says itself which of its pages are there.
static bool add_of_process(const struct stopped_image *live, uint64_t page_bytes,
                           struct heap_area area, size_t *page, struct survey_ranges *ranges,
                           struct looked_areas *looked) {
    for (const uint64_t end = area.end; area.start < end; area.start = area.end) {
        const struct stopped_segment *segment = segment_of(live, area.start);
        if (!segment) break;
        area.end = segment->end < end ? segment->end : end;
        area.first_page = *page;
        *page += (area.end - area.start) / page_bytes;
        if (!add(ranges, looked, &area,
                 segment->are_resident + (area.start - segment->start) / page_bytes))
            return false;
    }
    return true;
}

static size_t page_count(const struct heap_state *state, uint64_t page_bytes) {
    size_t count = 0;
    for (size_t i = 0; i < state->areas.count; i++)
        count += (state->areas.items[i].end - state->areas.items[i].start) / page_bytes;
    return count;
}

bool survey_ranges_make(const struct core_image *core, const struct stopped_image *live,
                        struct heap_state *state, struct survey_ranges *ranges) {
    const uint64_t page_bytes = core_page_bytes(core);
    struct looked_areas looked = {{0}};
    size_t page = 0;
    bool is_ok = true;
    if (!live) {
        ranges->are_written = calloc(page_count(state, page_bytes) + 1, 1);
        is_ok = ranges->are_written;
    }
    for (size_t i = 0; i < state->areas.count && is_ok; i++) {
        struct heap_area *area = &state->areas.items[i];
        is_ok = live ? add_of_process(live, page_bytes, *area, &page, ranges, &looked)
                     : add_of_core(core, area, &page, ranges, &looked);
    }
    array_free(&state->areas);
    state->areas.items = looked.items.items;
    state->areas.count = looked.items.count;
    state->areas.capacity = looked.items.capacity;
    return is_ok;
}

void survey_ranges_free(struct survey_ranges *ranges) {
    array_free(&ranges->list);
    free(ranges->are_written);
    ranges->are_written = NULL;
}
