// SPDX-License-Identifier: Apache-2.0
// What glibc's malloc holds without it being in use: read from outside, out of the process' memory,
// since a call into it takes locks and as long as there are free chunks.
//
// The first arena is found in libc's data by its empty bins, which point to themselves; the others
// follow in a circle. The process goes on meanwhile: whatever makes no sense ends the look, and the
// caller then knows nothing rather than something wrong.
#ifndef TOOL_WATCH_ARENAS_H
#define TOOL_WATCH_ARENAS_H

#include <stdbool.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/watch/mappings.h"

// Fills what begins with free_, arena_bytes, arena_count and is_cut. False (and nothing
// is filled) if the memory cannot be read, or it is not glibc's.
bool arenas_look(pid_t pid, const struct mappings *mappings, struct cairn_picture *picture);

#endif
