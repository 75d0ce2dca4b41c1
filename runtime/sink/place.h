// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_SINK_PLACE_H
#define RUNTIME_SINK_PLACE_H

#include <stddef.h>

// Keeps CAIRN_OUTPUT as the environment has it now, for when the program has emptied that.
void place_remember(void);

// The absolute path for this process' own file: CAIRN_OUTPUT with %p (pid) and %n (name of the
// executable) filled in, or NAME.PID.cairn in the working directory. `attempt` > 0 puts a number
// before the last dot. Empty if it would be too long or the working directory was removed.
void place_path(char *path, size_t size, unsigned attempt);

#endif
