// SPDX-License-Identifier: Apache-2.0
// When moments are taken (format/moments.h): after so much was allocated and freed, at new highs of
// the heap, at the end, and when the program asks. The tool takes those that a user asks for.
#ifndef RUNTIME_MOMENTS_H
#define RUNTIME_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/region.h"

// The recording's table; `every_bytes` 0: none is taken by itself.
void moments_open(struct region moments, struct cairn_header *header, uint64_t every_bytes);

// The totals were published: the heap holds so much.
void moments_look(int64_t live_bytes, int64_t live_blocks);

// Takes one now. False: no room, or somebody else is taking one. A label may be NULL.
bool moments_take(enum cairn_moment_reason reason, const char *label);
// The same in a signal handler, whatever it interrupted; false also if a moment is being taken.
bool moments_take_in_handler(enum cairn_moment_reason reason, int signal);

// So much was allocated and freed, as far as threads have published it, that one is due.
bool moments_is_due(void);

// A forked child keeps the marks of its parent: blocks of later generations are younger.
void moments_inherit(const struct cairn_header *parent);

#endif
