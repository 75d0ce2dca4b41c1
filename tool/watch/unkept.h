// SPDX-License-Identifier: Apache-2.0
// Processes that are recorded and of which nothing is kept (watched_is_worthless): another
// recording of the run tells how many there were and how much they allocated.
#ifndef TOOL_WATCH_UNKEPT_H
#define TOOL_WATCH_UNKEPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "tool/watch/watched.h"

// Returns what the process and those that it tells of allocated. A process without an allocation is
// not counted.
struct cairn_unkept unkept_of(const struct watched *process);

// Adds it to the recording of the nearest process above, else to another one of the `list`. False:
// there is none but the process itself.
bool unkept_give(struct watched *list, pid_t main_pid, const struct watched *process,
                 const struct cairn_unkept *unkept);

#endif
