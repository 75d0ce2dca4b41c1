// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/present.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

bool present_begin(struct core_image *core) {
    const uint64_t pages = core->source.size / core_page_bytes(core) + 1;
    core->present = calloc(pages / WORD_BITS + 1, sizeof *core->present);
    return core->present != NULL;
}

void present_note(struct core_image *core, uint64_t offset, uint64_t size) {
    const uint64_t page_bytes = core_page_bytes(core);
    for (uint64_t page = offset / page_bytes; page * page_bytes < offset + size; page++)
        core->present[page / WORD_BITS] |= (uint64_t)1 << page % WORD_BITS;
}

static bool is_there(const struct core_image *core, uint64_t page) {
    return core->present[page / WORD_BITS] >> page % WORD_BITS & 1;
}

// Returns the first page from `page` on that is there, or is not; `end`: none is so.
static uint64_t find_page(const struct core_image *core, uint64_t page, uint64_t end,
                          bool is_wanted) {
    const uint64_t none = is_wanted ? 0 : UINT64_MAX;
    while (page < end && is_there(core, page) != is_wanted)
        page += page % WORD_BITS == 0 && core->present[page / WORD_BITS] == none ? WORD_BITS : 1;
    return page < end ? page : end;
}

// Returns how many of the bytes lie on pages that are all there, or all not there.
static size_t alike_bytes(const struct core_image *core, uint64_t offset, size_t size) {
    const uint64_t page_bytes = core_page_bytes(core), page = offset / page_bytes;
    const uint64_t end = (offset + size + page_bytes - 1) / page_bytes;
    const uint64_t other = find_page(core, page, end, !is_there(core, page));
    return other * page_bytes - offset < size ? (size_t)(other * page_bytes - offset) : size;
}

bool present_is_whole(const struct core_image *core, uint64_t offset, size_t size) {
    if (!core->present || !size) return true;
    return is_there(core, offset / core_page_bytes(core)) &&
           alike_bytes(core, offset, size) == size;
}

void present_read(const struct core_image *core, uint64_t offset, uint8_t *out, size_t size) {
    for (size_t part; size; offset += part, out += part, size -= part) {
        part = alike_bytes(core, offset, size);
        if (is_there(core, offset / core_page_bytes(core)))
            memcpy(out, core->map + offset, part);
        else
            memset(out, 0, part);
    }
}

uint64_t present_next(const struct core_image *core, uint64_t offset, uint64_t end) {
    const uint64_t page_bytes = core_page_bytes(core), page = offset / page_bytes;
    if (is_there(core, page)) return offset;
    const uint64_t next =
        find_page(core, page, (end + page_bytes - 1) / page_bytes, true) * page_bytes;
    return next < end ? next : end;
}
