// SPDX-License-Identifier: Apache-2.0
#include "tool/go/pages.h"

static const uint8_t *page_at(struct go_pages *pages, uint64_t start) {
    const size_t place = start / GO_PAGE_BYTES % GO_PAGES_KEPT;
    if (pages->starts[place] == start + 1) return pages->bytes[place];
    pages->starts[place] = 0;
    if (!memory_read(pages->memory, start, pages->bytes[place], GO_PAGE_BYTES)) return NULL;
    pages->starts[place] = start + 1;
    return pages->bytes[place];
}

bool go_pages_read(struct go_pages *pages, uint64_t address, void *out, size_t size) {
    if (address > UINT64_MAX - size) return false;
    for (size_t done = 0; done < size;) {
        const uint64_t at = address + done;
        const size_t inside = at % GO_PAGE_BYTES;
        const size_t rest = GO_PAGE_BYTES - inside;
        const size_t part = rest < size - done ? rest : size - done;
        const uint8_t *page = page_at(pages, at - inside);
        // a dump may end in the middle of a page
        if (!page && !memory_read(pages->memory, at, (uint8_t *)out + done, part)) return false;
        if (page) memcpy((uint8_t *)out + done, page + inside, part);
        done += part;
    }
    return true;
}
