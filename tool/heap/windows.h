// SPDX-License-Identifier: Apache-2.0
// A part of a heap that is too large to be copied while its process stands, drawn at random: what
// is found in it stands for the whole (tool/model/drawn.h).
//
//     windows       64 KiB of addresses each, of those in which blocks begin. The blocks that
//                   begin in one count, and are copied up to their end, if the budget allows
//     large blocks  those of at least a window that are known beforehand: the recorded ones, and
//                   glibc's with mappings of their own. All of them are in the list, as far as the
//                   budget allows; of each the last resident pages are copied, which say where its
//                   use ends
//
// Which windows there are is found while the process runs: of a recorded one from its map of live
// blocks, of another one from the pages of glibc's arenas, where chunks are found from the middle
// (tool/glibc/resync.h). While it stands only what was drawn is copied.
#ifndef TOOL_HEAP_WINDOWS_H
#define TOOL_HEAP_WINDOWS_H

#include "format/format.h"
#include "tool/base/spans.h"
#include "tool/glibc/resync.h"
#include "tool/heap/plan.h"

#define WINDOW_BYTES (UINT64_C(64) << 10)

struct heap_window {
    uint64_t start;
    uint64_t behind;                  // of an arena: where its chunks end; 0: none begins in it
    uint64_t range_start, range_end;  // of an arena
    bool is_main;
};

struct large_block {
    uint64_t address, size;
};

struct heap_windows {
    uint64_t seed;
    bool are_drawn;
    bool are_by_map;        // of recorded blocks; else of glibc's chunks
    bool has_arenas;        // not by the map: there is a heap of glibc's
    uint64_t window_count;  // that they were drawn from
    uint64_t large_count, large_bytes;
    ARRAY(struct heap_window) drawn;  // ascending
    ARRAY(struct large_block) large;  // ascending; those that were drawn
    struct spans copied;              // settled: what else was not read
    struct spans begins;              // settled: where blocks begin that count
};

// What is drawn, and the plan to copy it: at most about `bytes_max`. False with an error.
bool windows_draw(const struct remote *remote, const struct cairn_header *header,
                  uint64_t bytes_max, uint64_t seed, struct heap_windows *windows,
                  struct plan *plan, struct error *error);
void windows_free(struct heap_windows *windows);

// The number of the window or, counted from their number on, of the large block that the block at
// an address belongs to; SIZE_MAX: to none.
size_t windows_unit_of(const struct heap_windows *windows, uint64_t address);

// What of a window's chunks resync_read needs.
struct resync windows_resync(const struct heap_window *window, const struct memory_reader *memory);

#endif
