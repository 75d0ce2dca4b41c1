// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/pagemap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/proc/process.h"

enum { ENTRIES_AT_ONCE = 4096 };
static const uint64_t present_bit = 1ull << 63, swapped_bit = 1ull << 62, of_file_bit = 1ull << 61;

static const uint64_t exclusive_bit = 1ull << 56, number_bits = (1ull << 55) - 1;

// PAGEMAP_SCAN of linux/fs.h, which the headers of older systems lack.
struct scan_range {
    uint64_t start, end, categories;
};
struct scan {
    uint64_t size, flags, start, end, walk_end, ranges, range_count, most_pages;
    uint64_t inverted, all_of, any_of, told;
};
#define PAGEMAP_SCAN_CALL _IOWR('f', 16, struct scan)
static const uint64_t scan_zero_page = 1 << 5;

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

static bool may_be_zero(uint64_t entry) {
    return entry & present_bit && !(entry & exclusive_bit);
}

void pagemap_drop_zero(uint64_t *entries, size_t count, uint64_t number) {
    for (size_t i = 0; i < count && number; i++)
        if (may_be_zero(entries[i]) && (entries[i] & number_bits) == number)
            entries[i] &= ~(present_bit | of_file_bit);
}

// Returns the number of the page of zeros, as one of our own pages that is only read has it. 0:
// numbers may not be read, or this kernel has no such page.
static uint64_t zero_page_number(void) {
    static uint64_t number;
    static bool is_known;
    if (is_known) return number;
    const size_t page_bytes = process_page_bytes();
    const int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
    const volatile char *page = mmap(NULL, page_bytes, access, kind, -1, 0);
    struct pagemap own = pagemap_open(getpid());
    uint64_t entry = 0;
    is_known = true;
    if (page != MAP_FAILED && !*page && own.file >= 0 &&
        pread(own.file, &entry, sizeof entry,
              (off_t)((uintptr_t)page / page_bytes * sizeof entry)) == sizeof entry &&
        may_be_zero(entry))
        number = entry & number_bits;
    if (page != MAP_FAILED) munmap((void *)page, page_bytes);
    pagemap_close(&own);
    return number;
}

// Asks the kernel which of the pages are the one of zeros. False: this kernel does not say.
static bool scan_zero_pages(const struct pagemap *pagemap, uint64_t page, size_t count,
                            uint64_t *entries) {
    enum { RANGES = 64 };
    struct scan_range ranges[RANGES];
    const uint64_t page_bytes = pagemap->page_bytes, end = page + count;
    for (uint64_t at = page; at < end;) {
        struct scan scan = {.size = sizeof scan,
                            .start = at * page_bytes,
                            .end = end * page_bytes,
                            .ranges = (uintptr_t)ranges,
                            .range_count = RANGES,
                            .all_of = scan_zero_page,
                            .told = scan_zero_page};
        int found = ioctl(pagemap->file, PAGEMAP_SCAN_CALL, &scan);
        if (found < 0 || scan.walk_end <= scan.start) return found >= 0;
        for (int i = 0; i < found; i++)
            for (uint64_t one = ranges[i].start / page_bytes; one < ranges[i].end / page_bytes;
                 one++)
                if (one >= page && one < end) entries[one - page] = 0;
        at = scan.walk_end / page_bytes;
    }
    return true;
}

static void drop_zero_pages(const struct pagemap *pagemap, uint64_t page, size_t count,
                            uint64_t *entries) {
    bool may_be_any = false;
    for (size_t i = 0; i < count && !may_be_any; i++) may_be_any = may_be_zero(entries[i]);
    if (may_be_any && !scan_zero_pages(pagemap, page, count, entries))
        pagemap_drop_zero(entries, count, zero_page_number());
}

// Reads the entries of some pages; returns how many there are.
static size_t read_entries(const struct pagemap *pagemap, uint64_t page, size_t count,
                           uint64_t *entries) {
    if (pagemap->file < 0) return 0;
    ssize_t got =
        pread(pagemap->file, entries, count * sizeof *entries, (off_t)(page * sizeof *entries));
    size_t known = got > 0 ? (size_t)got / sizeof *entries : 0;
    drop_zero_pages(pagemap, page, known, entries);
    return known;
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
