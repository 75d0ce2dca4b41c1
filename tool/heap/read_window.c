// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/read_window.h"

#include <stdlib.h>

enum { OBJECT_BYTES_MAX = 1 << 26 };  // of one variable or block that is looked through

static const uint8_t *read_small(struct read_window *window, const struct core_image *image,
                                 uint64_t address, uint64_t *size) {
    struct core_image core = *image;
    const uint8_t *bytes;
    uint64_t inside = address - window->start;  // large if it lies before
    uint64_t known = window->end - window->start;
    bool is_there = inside < known && *size <= known - inside;
    if (!is_there) {
        core.map = NULL;
        window->start = address;
        window->end =
            address + core_piece(&core, address, window->bytes, READ_WINDOW_BYTES, &bytes);
    }
    if (window->end - address < *size) *size = window->end - address;
    return *size ? window->bytes + (address - window->start) : NULL;
}

const uint8_t *read_window_at(struct read_window *window, const struct core_image *core,
                              uint64_t address, uint64_t *size) {
    const uint8_t *bytes = NULL;
    if (core->map && core->source.descriptor >= 0 && *size <= READ_WINDOW_BYTES)
        return read_small(window, core, address, size);
    uint64_t wanted = *size < OBJECT_BYTES_MAX ? *size : OBJECT_BYTES_MAX;
    if (wanted > window->scratch_bytes && !core->map) {
        uint8_t *grown = realloc(window->scratch, wanted);
        if (!grown) return NULL;
        window->scratch = grown;
        window->scratch_bytes = wanted;
    }
    *size = core_piece(core, address, window->scratch, wanted, &bytes);
    return *size ? bytes : NULL;
}

void read_window_free(struct read_window *window) {
    free(window->scratch);
    *window = (struct read_window){0};
}
