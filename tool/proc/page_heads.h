// SPDX-License-Identifier: Apache-2.0
// The first words of a process' pages, by which an allocator's large blocks and heaps are known.
// Only pages that have memory are read, so that the process gets none by it.
#ifndef TOOL_PROC_PAGE_HEADS_H
#define TOOL_PROC_PAGE_HEADS_H

#include "tool/proc/remote.h"

enum { PAGE_HEADS_MAX = 512, PAGE_HEAD_WORDS = 4 };

struct page_head {
    uint64_t address;
    uint64_t words[PAGE_HEAD_WORDS];  // 0 if they could not be read
};

struct page_heads {
    struct page_head items[PAGE_HEADS_MAX];
    size_t count;
    uint64_t end;  // the pages from `at` to here were checked
};

// Reads the heads of the next pages from `at` on that have one of the flags `wanted` (pagemap.h),
// by `remote->pagemap`; of all pages if that is closed. It stops at `end` or when `heads` is full.
void page_heads_read(struct page_heads *heads, const struct remote *remote, uint8_t wanted,
                     uint64_t at, uint64_t end);

#endif
