// SPDX-License-Identifier: Apache-2.0
// What glibc's malloc of a running process holds free: the chunks in the bins of its arenas, and
// the ends of the arenas.
//
// The process goes on meanwhile. A chunk counts if the one before it and the one behind it in its
// bin agree on it; a bin that changes while it is walked is walked again. Pages with chunks are
// kept for a moment, the neighbours of those that follow one another are read with them: a system
// call for each chunk would take several times as long. Only resident pages are read.
#ifndef TOOL_WATCH_FREE_CHUNKS_H
#define TOOL_WATCH_FREE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/glibc/giveback.h"

// Processor time beside a process that runs; a command that looks at one may take longer.
#define FREE_CHUNKS_NS UINT64_C(20000000)
#define FREE_CHUNKS_LONG_NS UINT64_C(5000000000)

// Sets the fields of the picture that begin with free_, arena_bytes, arena_count, and is_cut: not
// all was counted, as after `most_ns` of processor time. `data`, `data_end`: where the main arena
// is, libc's data. False, and nothing is set: the memory cannot be read, or it is not glibc's.
bool free_chunks_find(pid_t pid, uint64_t data, uint64_t data_end, uint64_t most_ns,
                      struct cairn_picture *picture);

// The same by arena, with what lies in fastbins, and what of it goes back to the system
// (tool/glibc/giveback.h). False: then there is nothing to free.
bool free_chunks_giveback(pid_t pid, uint64_t data, uint64_t data_end, uint64_t most_ns,
                          struct giveback *giveback);

#endif
