// SPDX-License-Identifier: Apache-2.0
// Plans what to copy of a process' memory: its heap and its recording's map of live blocks, as far
// as they are known without walking the heap; or all memory that may refer to a block.
#ifndef TOOL_HEAP_PLAN_H
#define TOOL_HEAP_PLAN_H

#include "format/format.h"
#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/base/spans.h"
#include "tool/proc/remote.h"

enum piece_kind {
    PIECE_PAGES,     // which of its pages are resident is wanted, not their content
    PIECE_CONSTANT,  // of a module: that the program does not write
    PIECE_HEADS,     // blocks with mappings of their own: the pages with their heads
    PIECE_CHUNKS,    // memory of glibc's arenas: the heads of its chunks (tool/glibc/heads.h)
    PIECE_PRESENT,   // those of its pages that are there, the process' own and shared ones
    PIECE_WHOLE,     // those that are the process' own
};

// Whole pages.
struct piece {
    uint64_t start, end;
    enum piece_kind kind;
    bool is_code;
};

// 4 MiB in which recorded blocks lie.
struct block_stretch {
    uint64_t start;
    uint64_t slots;  // where the map's slots of them lie
    uint64_t odd;    // 8: those of blocks at odd multiples of 8; else 0
};

struct plan {
    ARRAY(struct piece) pieces;                   // ascending, apart from each other
    ARRAY(uint64_t) head_pages;                   // in pieces of that kind
    ARRAY(struct block_stretch) block_stretches;  // ascending
    struct spans hidden;                          // that PLAN_ALL leaves out, as a core dump does
    ARRAY(uint64_t) places;  // where the first plan found blocks and heaps by a search; ascending
    bool is_searched;
};

enum plan_scope {
    PLAN_HEADS,  // the same as PLAN_HEAP, but of chunks their heads alone
    PLAN_HEAP,   // what is needed to know which blocks there are
    PLAN_ALL,    // what is in them, and whatever may refer to them but `hidden`
};

// The first plan takes the longest: it searches all pages for what later ones look at again, beside
// the places where new blocks come to lie. `header`: as for stopped_take. The process may run
// meanwhile: then the plan may be wrong in places. False without memory, or if the process is gone.
bool plan_make(const struct remote *remote, const struct cairn_header *header,
               enum plan_scope scope, struct plan *plan, struct error *error);

// Finds what the process keeps out of core dumps (MADV_DONTDUMP), cairn's tables among it; before
// the first plan of PLAN_ALL.
bool plan_find_hidden(struct plan *plan, pid_t pid, struct error *error);
void plan_free(struct plan *plan);

#endif
