// SPDX-License-Identifier: Apache-2.0
// Resident memory of a recorded process' live map (format/live_map.h), by its tables: beside an
// allocator that maps without reservation no flag of a mapping tells cairn's from the allocator's.
#ifndef TOOL_WATCH_OWN_MAP_H
#define TOOL_WATCH_OWN_MAP_H

#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"

// Returns its bytes; of a heap of many GiB those of the first leaves. 0: they cannot be read.
uint64_t own_map_bytes(pid_t pid, const struct cairn_header *header);

#endif
