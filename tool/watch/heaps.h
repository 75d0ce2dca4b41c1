// SPDX-License-Identifier: Apache-2.0
// The heaps that glibc's arenas of threads consist of: 64 MiB of address space each, at a multiple
// of that, of which the lower part is accessible. The kernel may join that part with a mapping
// before it, such as cairn's memory, so that /proc shows one mapping where there are two.
#ifndef TOOL_WATCH_HEAPS_H
#define TOOL_WATCH_HEAPS_H

#include <stdint.h>
#include <sys/types.h>

// Resident bytes of heaps in the mapping [start, end) of the process, which /proc/PID/pagemap is
// read of through `pages`. Pages that are not resident stay so.
uint64_t heaps_present_bytes(pid_t pid, int pages, uint64_t start, uint64_t end);

#endif
