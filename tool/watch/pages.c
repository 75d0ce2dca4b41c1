// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, PAGES_AT_ONCE = 512, PRESENT_BIT = 63 };

int pages_open(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

// What a page has in common with the range.
static uint64_t overlap(uint64_t page, uint64_t start, uint64_t end) {
    uint64_t from = page * PAGE_BYTES, to = from + PAGE_BYTES;
    if (from < start) from = start;
    if (to > end) to = end;
    return to - from;
}

void pages_are_present(int pages, uint64_t start, size_t count, bool *are_present) {
    uint64_t entries[PAGES_AT_ONCE];
    for (size_t done = 0; done < count;) {
        size_t some = count - done < PAGES_AT_ONCE ? count - done : PAGES_AT_ONCE;
        off_t at = (off_t)((start / PAGE_BYTES + done) * sizeof *entries);
        ssize_t got = pread(pages, entries, some * sizeof *entries, at);
        for (size_t i = 0; i < some; i++)
            are_present[done + i] =
                (ssize_t)((i + 1) * sizeof *entries) <= got && entries[i] >> PRESENT_BIT;
        done += some;
    }
}

uint64_t pages_present_bytes(int pages, uint64_t start, uint64_t end) {
    uint64_t entries[PAGES_AT_ONCE], present = 0;
    uint64_t page = start / PAGE_BYTES, last = (end - 1) / PAGE_BYTES;
    if (pages < 0 || end <= start) return 0;
    while (page <= last) {
        uint64_t count = last - page + 1;
        if (count > PAGES_AT_ONCE) count = PAGES_AT_ONCE;
        ssize_t got =
            pread(pages, entries, count * sizeof *entries, (off_t)(page * sizeof *entries));
        if (got < (ssize_t)sizeof *entries) return present;
        for (size_t i = 0; i < (size_t)got / sizeof *entries; i++)
            if (entries[i] >> PRESENT_BIT) present += overlap(page + i, start, end);
        page += (size_t)got / sizeof *entries;
    }
    return present;
}
