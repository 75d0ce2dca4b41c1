// SPDX-License-Identifier: Apache-2.0
// Which parts of a process' memory its heap and its recording's map of live blocks are, as far as
// they can be told without walking the heap.
#ifndef TOOL_LIVE_PLAN_H
#define TOOL_LIVE_PLAN_H

#include "format/format.h"
#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/live/peek.h"

enum piece_kind {
    PIECE_PAGES,     // which of its pages are resident is wanted, not their content
    PIECE_CONSTANT,  // of a module: that the program does not write
    PIECE_HEADS,     // blocks with mappings of their own: the pages with their heads
    PIECE_WHOLE,
};

// Whole pages.
struct piece {
    uint64_t start, end;
    enum piece_kind kind;
};

struct plan {
    ARRAY(struct piece) pieces;       // ascending, apart from each other
    ARRAY(uint64_t) head_pages;       // in pieces of that kind
    ARRAY(uint64_t) block_stretches;  // of 4 MiB, in which recorded blocks lie; ascending
};

// `header`: as for live_image_take. The process may run meanwhile: then the plan may be wrong in
// places. False without memory, or if the process is gone.
bool plan_make(const struct peek *peek, const struct cairn_header *header, struct plan *plan,
               struct error *error);
void plan_free(struct plan *plan);

#endif
