// SPDX-License-Identifier: Apache-2.0
// Which pages of a process have memory, by /proc/PID/pagemap
// (Documentation/admin-guide/mm/pagemap.rst of the kernel).
//
// Memory that was only read may be one page of zeros, which the kernel keeps for all processes and
// counts as nobody's: it is not resident here. Linux says so from 6.7 on (PAGEMAP_SCAN); before, it
// shows by the page's number, which root alone may read.
#ifndef TOOL_PROC_PAGEMAP_H
#define TOOL_PROC_PAGEMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pagemap {
    int file;             // /proc/PID/pagemap; -1: closed, nothing is known
    uint64_t page_bytes;  // that an entry is for: those of the kernel
};

// What is known of a page.
enum page_flag {
    PAGE_RESIDENT = 1,
    PAGE_OWN = 2,  // has content of its own, resident or swapped out, that is not its file's
    PAGE_SWAPPED = 4,
};

// A closed one.
struct pagemap pagemap_none(void);

// Closed, with errno, if it cannot be opened.
struct pagemap pagemap_open(pid_t pid);
void pagemap_close(struct pagemap *pagemap);

// Sets the flags of `count` pages from the page at `start` on, 0 where nothing is known. Returns
// how many are known.
size_t pagemap_flags(const struct pagemap *pagemap, uint64_t start, size_t count, uint8_t *flags);

// Returns how many bytes from `start` to `end` are on resident pages; 0 if that is not known.
uint64_t pagemap_resident_bytes(const struct pagemap *pagemap, uint64_t start, uint64_t end);

// Takes the marks of resident pages off `count` entries, as pagemap has them, that are the page of
// zeros. `number` is that page's; 0: not known.
void pagemap_drop_zero(uint64_t *entries, size_t count, uint64_t number);

#endif
