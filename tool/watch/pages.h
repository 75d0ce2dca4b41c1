// SPDX-License-Identifier: Apache-2.0
// Which pages of a process are resident, by /proc/PID/pagemap.
#ifndef TOOL_WATCH_PAGES_H
#define TOOL_WATCH_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A descriptor to be closed, or -1.
int pages_open(pid_t pid);

// Bytes from `start` to `end` that lie on resident pages; 0 if that cannot be known.
uint64_t pages_present_bytes(int pages, uint64_t start, uint64_t end);

// Which of `count` pages from the page at `start` on are.
void pages_are_present(int pages, uint64_t start, size_t count, bool *are_present);

#endif
