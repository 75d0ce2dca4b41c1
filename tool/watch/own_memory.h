// SPDX-License-Identifier: Apache-2.0
// Which of a process' anonymous memory the program mapped itself, and the allocator did not.
//
// With --mmap the process keeps a list (format.h, cairn_mapping_table). Without it glibc's large
// blocks can be told by their heads: each begins a page with a chunk of whole pages that has the
// flag of mmap. What is neither that nor an arena is the program's. Only pages that are resident
// are read, so that nothing changes in the process.
#ifndef TOOL_WATCH_OWN_MEMORY_H
#define TOOL_WATCH_OWN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/model/reader.h"
#include "tool/watch/mappings.h"

// Resident bytes of it. False: it cannot be told.
bool own_memory_look(pid_t pid, const struct mappings *mappings, struct recording *recording,
                     uint64_t *bytes);

#endif
