// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_SINK_COMPACT_H
#define RUNTIME_SINK_COMPACT_H

#include <stdbool.h>

#include "format/format.h"

// Writes the recording to `path`, replacing what is there. False, and nothing changed, if the
// directory cannot be written, the disk is full or the file would exceed RLIMIT_FSIZE.
bool compact_save(const struct cairn_header *header, const char *path);

#endif
