// SPDX-License-Identifier: Apache-2.0
// Small things all over another program's memory, read by whole pages of which the last ones are
// kept. Only pages that hold what is asked for are read: they have memory already.
#ifndef TOOL_GO_PAGES_H
#define TOOL_GO_PAGES_H

#include <string.h>

#include "tool/proc/memory_reader.h"

enum { GO_PAGE_BYTES = 4096, GO_PAGES_KEPT = 64 };

struct go_pages {
    const struct memory_reader *memory;
    uint64_t starts[GO_PAGES_KEPT];  // plus 1; 0: the place is empty
    uint8_t bytes[GO_PAGES_KEPT][GO_PAGE_BYTES];
};

static inline void go_pages_start(struct go_pages *pages, const struct memory_reader *memory) {
    pages->memory = memory;
    memset(pages->starts, 0, sizeof pages->starts);
}

// False if one of the bytes is not there.
bool go_pages_read(struct go_pages *pages, uint64_t address, void *out, size_t size);

#endif
