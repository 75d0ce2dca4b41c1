// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/pagemap.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tool/proc/process.h"

enum { ENTRIES_AT_ONCE = 4096 };
static const uint64_t present_bit = 1ull << 63, swapped_bit = 1ull << 62, of_file_bit = 1ull << 61;

struct pagemap pagemap_none(void) {
    return (struct pagemap){-1, process_page_bytes()};
}

struct pagemap pagemap_open(pid_t pid) {
    return (struct pagemap){process_open(pid, "pagemap", O_RDONLY), process_page_bytes()};
}

void pagemap_close(struct pagemap *pagemap) {
    if (pagemap->file >= 0) close(pagemap->file);
    pagemap->file = -1;
}

// Reads the entries of some pages; returns how many there are.
static size_t read_entries(const struct pagemap *pagemap, uint64_t page, size_t count,
                           uint64_t *entries) {
    if (pagemap->file < 0) return 0;
    ssize_t got =
        pread(pagemap->file, entries, count * sizeof *entries, (off_t)(page * sizeof *entries));
    return got > 0 ? (size_t)got / sizeof *entries : 0;
}

static uint8_t flags_of(uint64_t entry) {
    uint8_t flags = entry & present_bit ? PAGE_RESIDENT : 0;
    bool is_own = entry & (present_bit | swapped_bit) && !(entry & of_file_bit);
    if (entry & swapped_bit) flags |= PAGE_SWAPPED;
    return is_own ? flags | PAGE_OWN : flags;
}

size_t pagemap_flags(const struct pagemap *pagemap, uint64_t start, size_t count, uint8_t *flags) {
    uint64_t entries[ENTRIES_AT_ONCE];
    size_t known = 0;
    for (size_t done = 0; done < count;) {
        size_t some = count - done < ENTRIES_AT_ONCE ? count - done : ENTRIES_AT_ONCE;
        size_t got = read_entries(pagemap, start / pagemap->page_bytes + done, some, entries);
        for (size_t i = 0; i < some; i++) flags[done + i] = i < got ? flags_of(entries[i]) : 0;
        known += got;
        done += some;
    }
    return known;
}

// How many bytes of the page at `from` are in the range.
static uint64_t overlap(uint64_t from, uint64_t page_bytes, uint64_t start, uint64_t end) {
    uint64_t to = from + page_bytes;
    if (from < start) from = start;
    if (to > end) to = end;
    return to - from;
}

uint64_t pagemap_resident_bytes(const struct pagemap *pagemap, uint64_t start, uint64_t end) {
    const uint64_t page_bytes = pagemap->page_bytes;
    uint64_t entries[ENTRIES_AT_ONCE], resident = 0;
    if (end <= start) return 0;
    for (uint64_t page = start / page_bytes, last = (end - 1) / page_bytes; page <= last;) {
        uint64_t left = last - page + 1;
        size_t some = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
        size_t got = read_entries(pagemap, page, some, entries);
        if (!got) break;
        for (size_t i = 0; i < got; i++)
            if (entries[i] & present_bit)
                resident += overlap((page + i) * page_bytes, page_bytes, start, end);
        page += got;
    }
    return resident;
}
