// SPDX-License-Identifier: Apache-2.0
// The mappings of a process, as /proc/PID/maps lists them.
#ifndef TOOL_ATTACH_MAPS_H
#define TOOL_ATTACH_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

enum map_kind {
    MAPS_FILE,
    MAPS_ANONYMOUS,  // also with a name that the process gave it
    MAPS_HEAP,       // that brk has made
    MAPS_OTHER,      // a stack, the kernel's
};

struct map_range {
    uint64_t start, end;
    enum map_kind kind;
    bool is_readable, is_writable, is_private;
};

struct maps {
    ARRAY(struct map_range) items;  // ascending
};

// Replaces what is in `mappings`. False, with the reason, if the process has ended.
bool maps_read(pid_t pid, struct maps *maps, struct error *error);
void maps_free(struct maps *maps);

#endif
