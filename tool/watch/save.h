// SPDX-License-Identifier: Apache-2.0
// A process' memory as a file.
#ifndef TOOL_WATCH_SAVE_H
#define TOOL_WATCH_SAVE_H

#include "tool/watch/memory.h"

// Writes the recording to `path` by way of a temporary name; an older file there is replaced.
// Packed (format/packed.h) if the process is over, else compact: it may go on changing the memory.
bool memory_save(const struct memory *memory, const struct memory_end *end, const char *path,
                 struct error *error);

#endif
