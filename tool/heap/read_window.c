// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/read_window.h"

#include <stdlib.h>
#include <string.h>

enum { OBJECT_BYTES_MAX = 1 << 26 };  // of one variable or block that is looked through

static bool grow_scratch(struct read_window *window, uint64_t bytes) {
    if (bytes <= window->scratch_bytes) return true;
    uint8_t *grown = realloc(window->scratch, bytes);
    if (!grown) return false;
    window->scratch = grown;
    window->scratch_bytes = bytes;
    return true;
}

// Reads an object that lies in several segments without a gap, such as an array at the end of a
// module's data, of which the kernel makes two mappings.
static const uint8_t *read_joined(struct read_window *window, const struct core_image *core,
                                  uint64_t address, uint64_t wanted, uint64_t *size) {
    const uint8_t *bytes;
    size_t part;
    *size = 0;
    if (!grow_scratch(window, wanted)) return NULL;
    while (*size < wanted) {
        uint8_t *at = window->scratch + *size;
        part = core_piece(core, address + *size, at, (size_t)(wanted - *size), &bytes);
        if (!part) break;
        if (bytes != at) memcpy(at, bytes, part);
        *size += part;
    }
    return *size ? window->scratch : NULL;
}

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
    const uint64_t wanted = *size < OBJECT_BYTES_MAX ? *size : OBJECT_BYTES_MAX;
    const uint8_t *bytes = NULL;
    if (core->map && core->source.descriptor >= 0 && *size <= READ_WINDOW_BYTES) {
        bytes = read_small(window, core, address, size);
    } else {
        if (!core_lies_here(core) && !grow_scratch(window, wanted)) return NULL;
        *size = core_piece(core, address, window->scratch, (size_t)wanted, &bytes);
    }
    bool is_cut = *size && *size < wanted && core_segment_of(core, address + *size);
    if (is_cut) return read_joined(window, core, address, wanted, size);
    return *size ? bytes : NULL;
}

void read_window_free(struct read_window *window) {
    free(window->scratch);
    *window = (struct read_window){0};
}
