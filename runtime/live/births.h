// SPDX-License-Identifier: Apache-2.0
// When blocks were allocated, for --ages: beside the live map, 8 bytes for each of its granules of
// heap, in memory that exists as far as blocks lie there. What the live map does not know has no
// birth here: entries are never taken out, but overwritten by the next block at the address.
#ifndef RUNTIME_LIVE_BIRTHS_H
#define RUNTIME_LIVE_BIRTHS_H

#include <stdint.h>

struct birth {
    uint32_t call;  // number of the allocation among those of its thread
    uint32_t ms;
};

// The entry of a block, made if need be; NULL without memory.
struct birth *births_at(uintptr_t address);

#endif
