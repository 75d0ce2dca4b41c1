// SPDX-License-Identifier: Apache-2.0
// Memory of Python's own allocator, pymalloc, which has the objects of up to 512 bytes: pools of
// one size each, in arenas that it maps itself (Objects/obmalloc.c of CPython 3.3 and later).
#ifndef TOOL_HEAP_PYTHON_POOLS_H
#define TOOL_HEAP_PYTHON_POOLS_H

#include "tool/heap/stopped.h"

struct python_pools {
    uint64_t pool_count;
    uint64_t bytes;       // of pools, resident
    uint64_t used_bytes;  // of objects in them
};

// Finds the pools in a copy of a process' memory, by what their heads must be: without symbols, and
// whatever the program is called.
void python_pools_find(const struct stopped_image *live, struct python_pools *pools);

#endif
