// SPDX-License-Identifier: Apache-2.0
// A set of numbers from which the smallest one is taken: a bit for each, and above each word of
// bits one that says whether there are any.
#ifndef TOOL_CORE_PENDING_H
#define TOOL_CORE_PENDING_H

#include <stdbool.h>
#include <stdint.h>

enum { PENDING_STAGES = 6 };  // of 32 bits

struct pending {
    uint64_t *words[PENDING_STAGES];
};

// Of numbers below `count`. False without memory; to be closed all the same.
bool pending_open(struct pending *pending, uint32_t count);
void pending_close(struct pending *pending);

void pending_add(struct pending *pending, uint64_t number);

// False: there is none.
bool pending_take(struct pending *pending, uint32_t *number);

#endif
