// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/memory_reader.h"

#include <stdlib.h>

#include "tool/base/search.h"

enum { WINDOW_BYTES = 1 << 16 };

const struct memory_segment *memory_segment_of(const struct memory_segment *segments, size_t count,
                                               uint64_t address) {
    size_t low;
    search_first(low, count, segments[low].end > address);
    return low < count && segments[low].start <= address ? &segments[low] : NULL;
}

bool memory_window_open(struct memory_window *window, const struct memory_reader *reader) {
    *window = (struct memory_window){.reader = reader, .scratch = malloc(WINDOW_BYTES)};
    return window->scratch;
}

void memory_window_close(struct memory_window *window) {
    free(window->scratch);
    window->scratch = NULL;
}

bool memory_window_move(struct memory_window *window, uint64_t address, size_t size) {
    const struct memory_reader *reader = window->reader;
    if (reader->place_done) reader->place_done(reader->context, &window->places);
    size_t there =
        reader->piece(reader->context, address, window->scratch, WINDOW_BYTES, &window->bytes);
    window->start = address;
    window->end = address + there;
    return there >= size;
}
