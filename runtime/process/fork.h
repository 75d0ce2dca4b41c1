// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_PROCESS_FORK_H
#define RUNTIME_PROCESS_FORK_H

#include <stdbool.h>

#include "format/format.h"

// Fills a forked child's new recording (already connected to the rooms) with the modules, stacks
// and cell numbers of its parent's, and counts the blocks that the child's copy of the live map
// holds. Ids stay the same, so the live map needs no change. Only one thread exists.
bool fork_recording(const struct cairn_header *parent);

#endif
