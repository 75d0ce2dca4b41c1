// SPDX-License-Identifier: Apache-2.0
// The sections that runtime/stack writes, over plain memory, and a reader of stacks written from
// the drawing in format.h alone.
#ifndef TESTS_UNIT_RUNTIME_STACK_RECORDING_H
#define TESTS_UNIT_RUNTIME_STACK_RECORDING_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/format.h"
#include "runtime/stack/block_stats.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/intern.h"
#include "runtime/stack/module.h"

enum { RECORDING_REGIONS = 14, RECORDING_CHUNK_BYTES = 64 << 10, RECORDING_RESERVED_WORDS = 4 };

static struct cairn_header recording_header;
static uint64_t recording_used[RECORDING_REGIONS];
static struct region recording_regions[RECORDING_REGIONS];

static inline struct region recording_region(int number, uint64_t bytes) {
    bytes = sys_page_up(bytes);
    struct region *region = &recording_regions[number];
    if (region->base) munmap(region->base, region->capacity_bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    recording_used[number] = 0;
    *region = (struct region){.base = memory,
                              .capacity_bytes = bytes,
                              .chunk_bytes = RECORDING_CHUNK_BYTES,
                              .used_bytes = &recording_used[number]};
    return *region;
}

// An empty recording with room for so many cells and words of records.
static inline void recording_start(uint64_t cell_limit, uint64_t word_limit) {
    memset(&recording_header, 0, sizeof recording_header);
    modules = (struct modules){.header = &recording_header};
    modules.entries = recording_region(0, 64 * sizeof(struct cairn_module));
    modules.strings = recording_region(1, 64 << 10);
    stacks.records = recording_region(2, word_limit * sizeof(uint32_t));
    cells = (struct cells){.totals = &recording_header.totals, .id_limit = UINT32_MAX};
    cells.region = recording_region(3, cell_limit * sizeof(struct cairn_cell));
    cells.rare_region = recording_region(4, cell_limit * sizeof(struct cairn_cell_rare));
    cells.owner_region = recording_region(5, cell_limit / CAIRN_CELL_BLOCK * sizeof(uint16_t));
    uses.sizes = recording_region(7, 64 * sizeof(struct cairn_sizes));
    uses.reallocs = recording_region(8, 64 * sizeof(struct cairn_reallocs));
    uses.aligned = recording_region(11, 64 * sizeof(struct cairn_aligned));
    cells.fast_limit = cells.id_limit;
    values.samples = values.sample_cells = (struct region){0};
    values.entries = recording_region(9, 1 << 20);
    values.header = &recording_header;
    values.snapshots = (const struct cairn_snapshot *)recording_region(
                           10, CAIRN_SNAPSHOT_LIMIT * sizeof(struct cairn_snapshot))
                           .base;
    values.snapshot_bytes = &recording_used[10];
    cells.items = (struct cairn_cell *)cells.region.base;
    cells.rare = (struct cairn_cell_rare *)cells.rare_region.base;
    cells.owners = (uint16_t *)cells.owner_region.base;
    if (!cells_init()) abort();
    if (!region_take(&stacks.records, RECORDING_RESERVED_WORDS * sizeof(uint32_t))) abort();
}

// A frame as a reader sees it: a plain address, or `module` - 1 and an offset, or a cut.
struct read_frame {
    uint64_t value;
    uint32_t module;
    bool is_cut;
};

// Reads one frame code; the words it took, 0 if it is malformed.
static inline uint32_t read_code(const uint32_t *word, struct read_frame *frame) {
    uint32_t window = word[0] >> CAIRN_WINDOW_BITS;
    *frame = (struct read_frame){0};
    if (window < CAIRN_WINDOW_COUNT) {
        uint64_t low = word[0] & ((1u << CAIRN_WINDOW_BITS) - 1);
        if (window > 0 && !recording_header.windows[window]) return 0;
        frame->value = recording_header.windows[window] + low;
        return 1;
    }
    switch (word[0] >> 24) {
    case 0xF0:
        frame->value = word[0] & 0xffffff;
        frame->is_cut = true;
        return 1;
    case 0xF1:
        frame->module = (word[0] & 0xffffff) + 1;
        frame->value = word[1];
        return 2;
    case 0xF2:
        frame->value = word[1] | (uint64_t)word[2] << 32;
        return 3;
    }
    return 0;
}

// So many frame codes behind the `depth` frames that are there; the depth then, or -1.
static inline int64_t read_codes(const uint32_t *words, uint32_t count, struct read_frame *frames,
                                 int64_t depth, uint32_t capacity) {
    for (; count > 0; count--) {
        if (depth == capacity) return -1;
        uint32_t taken = read_code(words, &frames[depth++]);
        if (!taken) return -1;
        words += taken;
    }
    return depth;
}

static inline int64_t read_stack(uint32_t id, struct read_frame *frames, uint32_t capacity);

// The same for a record of one word as its head.
static inline int64_t read_short(uint32_t id, const uint32_t *record, struct read_frame *frames,
                                 uint32_t capacity) {
    uint32_t tail = CAIRN_SHORT_TAIL(record[0]), drop = CAIRN_SHORT_DROP(record[0]);
    uint32_t older = id - CAIRN_SHORT_BACK(record[0]);
    if (older == id || older > id || tail > drop) return -1;
    struct read_frame same[CAIRN_SHORT_TAIL_MOST];
    int64_t depth = read_stack(older, frames, capacity);
    if (depth < drop) return -1;
    for (uint32_t i = 0; i < tail; i++) same[i] = frames[depth - tail + i];
    depth = read_codes(record + 1, CAIRN_SHORT_NEW(record[0]), frames, depth - drop, capacity);
    if (depth < 0 || depth + tail > capacity) return -1;
    for (uint32_t i = 0; i < tail; i++) frames[depth++] = same[i];
    return depth;
}

// The stack of a cell, outermost frame first. Returns its depth, or -1 if a record breaks a rule.
static inline int64_t read_stack(uint32_t id, struct read_frame *frames, uint32_t capacity) {
    const uint32_t *words = (const uint32_t *)stacks.records.base;
    uint64_t word_count = recording_used[2] / sizeof *words;
    const uint32_t *record = words + cells.items[id].record;
    if (cells.items[id].record == 0 || cells.items[id].record + 1 > word_count) return -1;
    if (record[0] & CAIRN_RECORD_SHORT) return read_short(id, record, frames, capacity);
    if (cells.items[id].record + 2 > word_count) return -1;
    uint32_t older = record[0], keep = CAIRN_RECORD_KEEP(record[1]);
    uint32_t fresh = CAIRN_RECORD_NEW(record[1]);
    int64_t depth = 0;
    if (older) {
        if (cells.items[older].record >= cells.items[id].record) return -1;
        depth = read_stack(older, frames, capacity);
        if (depth < 0 || keep > depth) return -1;
    } else if (keep) {
        return -1;
    }
    if (record[1] & CAIRN_RECORD_FOREIGN) return older && !keep && fresh <= 1 ? depth : -1;
    return read_codes(record + 2, fresh, frames, keep, capacity);
}

#endif
