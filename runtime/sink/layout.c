// SPDX-License-Identifier: Apache-2.0
// How the sections share the recording's address space.
#include "runtime/sink/layout.h"

#include "format/events.h"
#include "format/guard.h"
#include "format/sample.h"
#include "runtime/sys/sys.h"

// Sections whose size does not depend on the space there is.
enum { MODULE_LIMIT = 4096, STRING_BYTES = 4 << 20, THREAD_LIMIT = 16384 };

// For every cell: its counters, its share of an owner entry, records of 14 new frames (those of
// real programs have three to five), and what only few cells have, or after a mark all new ones.
enum { RECORD_BYTES_PER_CELL = 64, RARE_BYTES_PER_CELL = 32 };

// Of so many cells one has an entry in SIZES, REALLOCS, ALIGNED or AGES.
enum { CELLS_PER_ENTRY = 32 };

// Values at snapshots: room for four million where there is room for most cells, no more.
enum { VALUE_BYTES_PER_CELL = 3 };

static uint64_t layout_put(struct cairn_header *header, uint64_t at, uint32_t kind,
                           uint32_t entry_bytes, uint64_t bytes) {
    struct cairn_section *section = &header->sections[header->section_count++];
    *section = (struct cairn_section){.kind = kind,
                                      .entry_bytes = entry_bytes,
                                      .offset = at,
                                      .capacity_bytes = sys_page_up(bytes)};
    return at + section->capacity_bytes;
}

// A large program in Python has some 100,000 pieces of code of 300 bytes.
static uint64_t code_bytes(uint64_t cell_limit) {
    const uint64_t most_bytes = 64u << 20, bytes_per_cell = 16;
    uint64_t bytes = cell_limit * bytes_per_cell;
    return bytes < most_bytes ? bytes : most_bytes;
}

static uint64_t layout_samples(struct cairn_header *header, uint64_t at, uint64_t cell_limit) {
    at = layout_put(header, at, CAIRN_SECTION_SAMPLING, sizeof(struct cairn_sampling),
                    sizeof(struct cairn_sampling));
    return layout_put(header, at, CAIRN_SECTION_SAMPLE_CELLS, sizeof(struct cairn_sample_entry),
                      cell_limit * sizeof(struct cairn_sample_entry));
}

// As many as there are values.
static uint64_t layout_sample_values(struct cairn_header *header, uint64_t at,
                                     uint64_t cell_limit) {
    const uint64_t values = cell_limit * VALUE_BYTES_PER_CELL / sizeof(struct cairn_value);
    return layout_put(header, at, CAIRN_SECTION_SAMPLE_VALUES, sizeof(struct cairn_sample_value),
                      (values + 1) * sizeof(struct cairn_sample_value));
}

// Their numbers have 16 bits.
static uint64_t aligned_limit(uint64_t cell_limit) {
    uint64_t entries = cell_limit / CELLS_PER_ENTRY;
    return entries < CAIRN_ALIGNED_LIMIT ? entries : CAIRN_ALIGNED_LIMIT;
}

static uint64_t layout_bands(struct cairn_header *header, uint64_t at) {
    at = layout_put(header, at, CAIRN_SECTION_GUARD, sizeof(struct cairn_guard),
                    sizeof(struct cairn_guard));
    return layout_put(header, at, CAIRN_SECTION_OVERRUNS, sizeof(struct cairn_overrun),
                      CAIRN_OVERRUN_LIMIT * sizeof(struct cairn_overrun));
}

static uint64_t layout_heaps(struct cairn_header *header, uint64_t at) {
    at = layout_put(header, at, CAIRN_SECTION_HEAP_STACKS, sizeof(struct cairn_heap_stack),
                    CAIRN_HEAP_STACK_LIMIT * sizeof(struct cairn_heap_stack));
    return layout_put(header, at, CAIRN_SECTION_HEAP_POINTS, sizeof(struct cairn_heap_points),
                      CAIRN_HEAP_POINTS_LIMIT * sizeof(struct cairn_heap_points));
}

// It counts as unused: no file has it.
static uint64_t layout_events(struct cairn_header *header, uint64_t at, uint64_t cell_limit) {
    const uint64_t bytes_per_cell = 64, most = sys_page_up(CAIRN_EVENTS_BYTES);
    uint64_t bytes = cell_limit * bytes_per_cell;
    return layout_put(header, at, CAIRN_SECTION_EVENTS, 1, bytes < most ? bytes : most);
}

static uint64_t layout_place(struct cairn_header *header, uint64_t cell_limit,
                             struct sink_rooms rooms) {
    uint64_t at = sys_page_up(CAIRN_HEADER_BYTES);
    header->section_count = 0;
    if (rooms.has_samples) at = layout_samples(header, at, cell_limit);
    if (rooms.has_sample_values) at = layout_sample_values(header, at, cell_limit);
    if (rooms.has_bands) at = layout_bands(header, at);
    if (rooms.has_events) at = layout_events(header, at, cell_limit);
    at = layout_put(header, at, CAIRN_SECTION_MODULES, sizeof(struct cairn_module),
                    MODULE_LIMIT * sizeof(struct cairn_module));
    at = layout_put(header, at, CAIRN_SECTION_STRINGS, 1, STRING_BYTES);
    at = layout_put(header, at, CAIRN_SECTION_THREADS, sizeof(struct cairn_thread),
                    THREAD_LIMIT * sizeof(struct cairn_thread));
    at = layout_put(header, at, CAIRN_SECTION_SCOPES, sizeof(struct cairn_scope),
                    CAIRN_SCOPE_LIMIT * sizeof(struct cairn_scope));
    if (rooms.has_mappings)
        at = layout_put(header, at, CAIRN_SECTION_MAPPERS, sizeof(struct cairn_mapper),
                        CAIRN_MAPPER_LIMIT * sizeof(struct cairn_mapper));
    if (rooms.has_heaps) at = layout_heaps(header, at);
    at = layout_put(header, at, CAIRN_SECTION_POINTS, sizeof(struct cairn_point),
                    CAIRN_POINT_LIMIT * sizeof(struct cairn_point));
    at = layout_put(header, at, CAIRN_SECTION_RESIDENT, sizeof(struct cairn_resident),
                    CAIRN_RESIDENT_LIMIT * sizeof(struct cairn_resident));
    at = layout_put(header, at, CAIRN_SECTION_PICTURES, sizeof(struct cairn_picture),
                    CAIRN_PICTURE_COUNT * sizeof(struct cairn_picture));
    at = layout_put(header, at, CAIRN_SECTION_OWNERS, sizeof(uint16_t),
                    cell_limit / CAIRN_CELL_BLOCK * sizeof(uint16_t));
    at = layout_put(header, at, CAIRN_SECTION_CELLS, sizeof(struct cairn_cell),
                    cell_limit * sizeof(struct cairn_cell));
    at = layout_put(header, at, CAIRN_SECTION_CELLS_RARE, sizeof(struct cairn_cell_rare),
                    cell_limit * RARE_BYTES_PER_CELL);
    if (rooms.has_codes)
        at = layout_put(header, at, CAIRN_SECTION_CODES, 1, code_bytes(cell_limit));
    at = layout_put(header, at, CAIRN_SECTION_SIZES, sizeof(struct cairn_sizes),
                    cell_limit / CELLS_PER_ENTRY * sizeof(struct cairn_sizes));
    at = layout_put(header, at, CAIRN_SECTION_REALLOCS, sizeof(struct cairn_reallocs),
                    cell_limit / CELLS_PER_ENTRY * sizeof(struct cairn_reallocs));
    at = layout_put(header, at, CAIRN_SECTION_ALIGNED, sizeof(struct cairn_aligned),
                    aligned_limit(cell_limit) * sizeof(struct cairn_aligned));
    at = layout_put(header, at, CAIRN_SECTION_AGES, sizeof(struct cairn_ages),
                    cell_limit / CELLS_PER_ENTRY * sizeof(struct cairn_ages));
    at = layout_put(header, at, CAIRN_SECTION_SNAPSHOTS, sizeof(struct cairn_snapshot),
                    CAIRN_SNAPSHOT_LIMIT * sizeof(struct cairn_snapshot));
    at = layout_put(header, at, CAIRN_SECTION_VALUES, sizeof(struct cairn_value),
                    cell_limit * VALUE_BYTES_PER_CELL);
    return layout_put(header, at, CAIRN_SECTION_RECORDS, sizeof(uint32_t),
                      cell_limit * RECORD_BYTES_PER_CELL);
}

uint64_t layout_make(struct cairn_header *header, uint64_t space_bytes, struct sink_rooms rooms) {
    const uint64_t most_cells = 1u << 25, fewest_cells = 1u << 11;
    for (uint64_t cell_limit = most_cells; cell_limit >= fewest_cells; cell_limit /= 2) {
        uint64_t bytes = layout_place(header, cell_limit, rooms);
        if (bytes <= space_bytes) return bytes;
    }
    return 0;
}
