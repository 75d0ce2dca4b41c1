// SPDX-License-Identifier: Apache-2.0
// What finding windows (windows_find.c) and drawing them (windows_draw.c) share.
#ifndef TOOL_HEAP_WINDOWS_INTERNAL_H
#define TOOL_HEAP_WINDOWS_INTERNAL_H

#include "tool/glibc/chunks.h"
#include "tool/heap/windows.h"
#include "tool/proc/maps.h"

// A window that something may be drawn of, and the last block in it, which may reach out.
struct candidate {
    uint64_t start, last;
    uint64_t end;  // of that block; 0: its head says
};

struct drawing {
    const struct remote *remote;
    const struct cairn_header *header;
    struct heap_windows *windows;
    struct plan heap;  // where the heap is
    struct plan *plan;
    uint64_t bytes_max, crossing_left, large_left;
    ARRAY(struct candidate) candidates;
    ARRAY(struct glibc_range) ranges;  // of arenas
    ARRAY(struct large_block) large;   // all
    struct spans pages;                // whose presence is wanted
    uint64_t before, before_end;       // the recorded block that was seen last
    bool is_bad;                       // no memory
};

// Reads memory of the running process of which only pages that are there are touched.
struct memory_reader drawing_reader(const struct drawing *drawing);

// The usable bytes of glibc's block, by its head; 0: there is none.
uint64_t drawing_size_by_head(const struct drawing *drawing, uint64_t address);

// Find candidates and large blocks: of the map of live blocks, or of glibc's arenas. False without
// memory.
bool drawing_scan_map(struct drawing *drawing);
bool drawing_scan_arenas(struct drawing *drawing, const struct extents *extents);

static inline uint64_t drawing_page_bytes(const struct drawing *drawing) {
    return drawing->remote->pagemap.page_bytes;
}

static inline uint64_t round_down(uint64_t address, uint64_t step) {
    return address / step * step;
}

static inline uint64_t round_up(uint64_t address, uint64_t step) {
    return (address + step - 1) / step * step;
}

#endif
