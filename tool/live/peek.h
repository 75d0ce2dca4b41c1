// SPDX-License-Identifier: Apache-2.0
// Reads the memory of another process without changing it: a page that is not there stays so, and
// reads as zeros. (Reading it would make the kernel put the zero page there.)
#ifndef TOOL_LIVE_PEEK_H
#define TOOL_LIVE_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEEK_PAGE_BYTES 4096u

// Of a page of a private mapping.
enum peek_page {
    PEEK_RESIDENT = 1,
    PEEK_OWN = 2,  // has content of its own, resident or swapped out, that is not its file's
};

struct peek {
    pid_t pid;
    int pages;  // descriptor of /proc/PID/pagemap
};

bool peek_open(struct peek *peek, pid_t pid);
void peek_close(struct peek *peek);

// What is known of `count` pages from `start` on: bits of enum peek_page, 0 where nothing is.
void peek_pages(const struct peek *peek, uint64_t start, size_t count, uint8_t *flags);

// Copies `size` bytes; false if nothing of them is there.
bool peek_read(const struct peek *peek, uint64_t address, void *out, size_t size);

// A part of the process' memory and where it goes.
struct peek_run {
    uint64_t address;
    uint8_t *to;
    size_t size;
};

// Copies runs whose pages are there; returns how many bytes it could.
uint64_t peek_copy(const struct peek *peek, const struct peek_run *runs, size_t count);

#endif
