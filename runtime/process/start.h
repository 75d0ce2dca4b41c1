// SPDX-License-Identifier: Apache-2.0
// Calls of the program that change what its recording may use. Opening it: state.h; ending it:
// end.h.
#ifndef RUNTIME_PROCESS_START_H
#define RUNTIME_PROCESS_START_H

#include <stdbool.h>
#include <stdint.h>

// The program is about to limit its memory (UINT64_MAX: not that): gives back what is only
// reserved, but for room in proportion to the limit.
void process_release_space(uint64_t space_bytes, uint64_t data_bytes);

// In a forked child that has no recording yet: it is to have none.
void process_leave_unrecorded(void);

// In a child forked in the middle of an event: what is left of that event goes into a private copy
// of the parent's recording.
void process_detach(void);

#endif
