// SPDX-License-Identifier: Apache-2.0
// The limits that the process lives under, RLIMIT_AS and RLIMIT_DATA, and what is given back for
// them. Address space that cairn has only reserved counts in both.
//
//   a large limit    what is reserved shrinks, and recording goes on
//   a small one      nothing more is recorded, and what cairn has goes, as far as no other thread
//                    can be using it
//
// A forked child that has not recorded anything yet holds what its parent had reserved. It begins
// its recording before it limits itself, or has none.
#ifndef RUNTIME_PROCESS_LIMITS_H
#define RUNTIME_PROCESS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

// The process has started: takes note of the limits that it was started with.
void limits_begin(void);

// True if it has either of the limits, or is about to have it.
bool limits_are_set(void);

// True if they may be too small for a recording to begin.
bool limits_are_small(void);

// The program is about to limit `resource` to so many bytes, from the hook with the frame `here`.
void limits_note(int resource, uint64_t bytes, uintptr_t here);

#endif
