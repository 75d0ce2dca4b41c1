// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/page_heads.h"

#include <string.h>

#include "tool/proc/pagemap.h"

enum { PAGE = PAGEMAP_PAGE_BYTES, FLAGS_AT_ONCE = 1024 };

static void read_flags(const struct remote *remote, uint8_t wanted, uint64_t at, size_t count,
                       uint8_t *flags) {
    if (remote->pagemap < 0)
        memset(flags, wanted, count);
    else
        pagemap_flags(remote->pagemap, at, count, flags);
}

void page_heads_read(struct page_heads *heads, const struct remote *remote, uint8_t wanted,
                     uint64_t at, uint64_t end) {
    struct remote_run runs[PAGE_HEADS_MAX];
    uint8_t flags[FLAGS_AT_ONCE];
    heads->count = 0;
    for (heads->end = at; heads->end < end && heads->count < PAGE_HEADS_MAX;) {
        uint64_t left = (end - heads->end + PAGE - 1) / PAGE;
        size_t some = left < FLAGS_AT_ONCE ? (size_t)left : FLAGS_AT_ONCE;
        read_flags(remote, wanted, heads->end, some, flags);
        for (size_t i = 0; i < some && heads->count < PAGE_HEADS_MAX; i++, heads->end += PAGE) {
            struct page_head *head = &heads->items[heads->count];
            if (!(flags[i] & wanted)) continue;
            *head = (struct page_head){.address = heads->end};
            runs[heads->count++] =
                (struct remote_run){head->address, (uint8_t *)head->words, sizeof head->words};
        }
    }
    remote_copy(remote, runs, heads->count);
}
