// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/present.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

bool present_begin(struct present *present, uint64_t size, uint64_t page_bytes) {
    *present = (struct present){calloc(size / page_bytes / WORD_BITS + 1, sizeof *present->bits),
                                page_bytes};
    return present->bits != NULL;
}

void present_free(struct present *present) {
    free(present->bits);
    present->bits = NULL;
}

void present_note(struct present *present, uint64_t offset, uint64_t size) {
    for (uint64_t page = offset / present->page_bytes; page * present->page_bytes < offset + size;
         page++)
        present->bits[page / WORD_BITS] |= (uint64_t)1 << page % WORD_BITS;
}

static bool is_there(const struct present *present, uint64_t page) {
    return present->bits[page / WORD_BITS] >> page % WORD_BITS & 1;
}

// Returns the first page from `page` on that is there, or is not; `end`: none is so.
static uint64_t find_page(const struct present *present, uint64_t page, uint64_t end,
                          bool is_wanted) {
    const uint64_t none = is_wanted ? 0 : UINT64_MAX;
    while (page < end && is_there(present, page) != is_wanted)
        page += page % WORD_BITS == 0 && present->bits[page / WORD_BITS] == none ? WORD_BITS : 1;
    return page < end ? page : end;
}

// Returns how many of the bytes lie on pages that are all there, or all not there.
static size_t alike_bytes(const struct present *present, uint64_t offset, size_t size) {
    const uint64_t page_bytes = present->page_bytes, page = offset / page_bytes;
    const uint64_t end = (offset + size + page_bytes - 1) / page_bytes;
    const uint64_t other = find_page(present, page, end, !is_there(present, page)) * page_bytes;
    return other - offset < size ? (size_t)(other - offset) : size;
}

bool present_is_whole(const struct present *present, uint64_t offset, size_t size) {
    if (!present->bits || !size) return true;
    return is_there(present, offset / present->page_bytes) &&
           alike_bytes(present, offset, size) == size;
}

void present_read(const struct present *present, const uint8_t *image, uint64_t offset,
                  uint8_t *out, size_t size) {
    for (size_t part; size; offset += part, out += part, size -= part) {
        part = alike_bytes(present, offset, size);
        if (is_there(present, offset / present->page_bytes))
            memcpy(out, image + offset, part);
        else
            memset(out, 0, part);
    }
}

uint64_t present_next(const struct present *present, uint64_t offset, uint64_t end) {
    const uint64_t page_bytes = present->page_bytes, page = offset / page_bytes;
    if (!present->bits || is_there(present, page)) return offset;
    const uint64_t next =
        find_page(present, page, (end + page_bytes - 1) / page_bytes, true) * page_bytes;
    return next < end ? next : end;
}
