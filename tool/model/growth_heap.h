// SPDX-License-Identifier: Apache-2.0
// Reads from the timeline what the whole heap held over the time of a growth, in equal parts of
// that time, the cells.
#ifndef TOOL_MODEL_GROWTH_HEAP_H
#define TOOL_MODEL_GROWTH_HEAP_H

#include "tool/model/profile.h"

#define GROWTH_CELLS 96u  // equal parts of the time in which a curve is drawn

// A program shuts down if it gives back this share of its heap in the time behind that share of it.
#define GROWTH_GIVEN_BACK_SHARE 0.5
#define GROWTH_SHUTDOWN_SHARE 0.9

struct growth_heap {
    const struct profile *profile;
    uint64_t start_ns, end_ns;
    // Bounds of what it held in the middle of each cell; INT64_MAX and 0: unknown.
    int64_t high[GROWTH_CELLS], low[GROWTH_CELLS];
    double allocated[GROWTH_CELLS];  // until then; all 0: unknown
    uint32_t cells;                  // up to where the program shuts down
};

void growth_heap_read(const struct profile *profile, uint64_t start_ns, uint64_t end_ns,
                      struct growth_heap *heap);

// The middle of a cell, and the first cell whose middle does not lie before the time.
uint64_t growth_heap_middle(const struct growth_heap *heap, uint32_t cell);
uint32_t growth_heap_cell(const struct growth_heap *heap, uint64_t at_ns);

// The most that any stack can have risen from the cell on; INT64_MAX: not known.
int64_t growth_heap_rise_most(const struct growth_heap *heap, uint32_t cell);

// The first cell from which on the heap is as it is at the end; GROWTH_CELLS: it was never so, or
// that is not known.
uint32_t growth_heap_settled(const struct growth_heap *heap);

// The most that the heap gave back from the cell on, up to the other one.
int64_t growth_heap_given_back(const struct growth_heap *heap, uint32_t from, uint32_t to);

#endif
