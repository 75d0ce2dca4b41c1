// SPDX-License-Identifier: Apache-2.0
// In which log places for pools are looked for, and what its cells are.
#ifndef TOOL_EVENTS_POOL_SEARCH_H
#define TOOL_EVENTS_POOL_SEARCH_H

#include <stddef.h>
#include <stdint.h>

struct pool_search {
    const char *log;                // the file's path
    const uint32_t *stack_of_cell;  // its number + 1; 0: of no interest
    size_t cell_count, stack_count;
    // Where the stack allocates in the program: stacks with the same number share a slab, say.
    const uint64_t *site_of_stack;
    uint64_t followed_limit;  // POOL_FOLLOWED_MOST, but for tests
};

#endif
