// SPDX-License-Identifier: Apache-2.0
// The parent goes on changing its recording meanwhile. What is copied here never changes once
// written: modules, strings, records, and of a cell the record and hash. Its counters start at zero
// and are rebuilt from the child's own copy of the live map; those of pools and of heaps by name
// from the tables of these.
#include "runtime/process/fork.h"

#include <string.h>

#include "runtime/api/arena.h"
#include "runtime/api/heap_points.h"
#include "runtime/api/heap_stacks.h"
#include "runtime/api/pool.h"
#include "runtime/inject/wrap.h"
#include "runtime/live/live.h"
#include "runtime/managed/codes.h"
#include "runtime/process/settings.h"
#include "runtime/record/event.h"
#include "runtime/record/event_log.h"
#include "runtime/record/mapped.h"
#include "runtime/record/sampling.h"
#include "runtime/record/snapshots.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/intern.h"
#include "runtime/stack/module.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/region.h"
#include "runtime/sys/veil.h"

static const struct cairn_section *parent_section(const struct cairn_header *parent,
                                                  enum cairn_section_kind kind) {
    for (uint32_t i = 0; i < parent->section_count; i++)
        if (parent->sections[i].kind == kind) return &parent->sections[i];
    return NULL;
}

// Copies the used part of one of the parent's sections to the start of ours.
static bool fork_section(const struct cairn_header *parent, enum cairn_section_kind kind,
                         struct region *region) {
    const struct cairn_section *section = parent_section(parent, kind);
    uint64_t used = section ? __atomic_load_n(&section->used_bytes, __ATOMIC_ACQUIRE) : 0;
    if (section && used > section->capacity_bytes) used = section->capacity_bytes;
    if (used == 0) return true;
    const uint8_t *start = (const uint8_t *)parent + section->offset;
    if (!veil_lift(start + used)) used = veil_readable_bytes(start, used);
    void *copy = region_take(region, used);
    if (copy) memcpy(copy, start, used);
    return copy != NULL;
}

static void fork_count(void *context, uintptr_t address, uint32_t id, uint64_t size) {
    struct cairn_thread *record = context;
    struct cairn_cell *cell = &cells.items[id];
    if ((uint64_t)id * sizeof *cell >= *cells.region.used_bytes) return;
    cell->allocated_bytes += size;
    cell->calls++;
    record->allocations++;
    record->allocated_bytes += size;
    record->net_bytes += (int64_t)size;
    if (settings.has_events) event_log_inherit(address, id, size);
}

// Counters of the parent are not ours; what a stack's blocks were like is counted anew.
static void cells_reset(void) {
    uint64_t count = *cells.region.used_bytes / sizeof(struct cairn_cell);
    uint64_t rare_count = *cells.rare_region.used_bytes / sizeof(struct cairn_cell_rare);
    for (uint64_t id = 0; id < count; id++) {
        struct cairn_cell *cell = &cells.items[id];
        *cell = (struct cairn_cell){.check = cell->check,
                                    .record = cell->record,
                                    .size = CAIRN_SIZE_VARIES,
                                    .rare = cell->rare <= rare_count ? cell->rare : 0};
    }
    for (uint64_t i = 0; i < rare_count; i++)
        cells.rare[i] = (struct cairn_cell_rare){.generation = cells.rare[i].generation};
    for (uint64_t block = 0; block < count / CAIRN_CELL_BLOCK; block++)
        cells.owners[block] = CAIRN_SLOT_SHARED;
}

bool fork_recording(const struct cairn_header *parent) {
    struct region threads = sink_region(CAIRN_SECTION_THREADS);
    memcpy(modules.header->windows, parent->windows, sizeof parent->windows);
    modules.header->allocator = parent->allocator;
    modules.header->allocator_module = parent->allocator_module;
    modules.header->slot_bytes = parent->slot_bytes;
    modules.header->slot_granule = parent->slot_granule;
    modules.header->live_map = parent->live_map;
    modules.header->live_samples = parent->live_samples;
    modules.header->is_attached = parent->is_attached;
    // before the cells that they refer to
    if (wrap_is_wanted() &&
        (!fork_section(parent, CAIRN_SECTION_HEAP_STACKS, heap_stacks_region()) ||
         !fork_section(parent, CAIRN_SECTION_HEAP_POINTS, heap_points_region())))
        return false;
    if (mapped_is_on && !fork_section(parent, CAIRN_SECTION_MAPPERS, mapped_mappers()))
        return false;
    if (!fork_section(parent, CAIRN_SECTION_MODULES, &modules.entries) ||
        !fork_section(parent, CAIRN_SECTION_STRINGS, &modules.strings) ||
        !fork_section(parent, CAIRN_SECTION_CODES, &codes.region) ||
        !fork_section(parent, CAIRN_SECTION_SCOPES, &scopes.entries) ||
        !fork_section(parent, CAIRN_SECTION_CELLS, &cells.region) ||
        !fork_section(parent, CAIRN_SECTION_CELLS_RARE, &cells.rare_region) ||
        !fork_section(parent, CAIRN_SECTION_OWNERS, &cells.owner_region) ||
        !fork_section(parent, CAIRN_SECTION_RECORDS, &stacks.records))
        return false;
    cells_reset();
    snapshots_inherit(parent);
    scopes_inherit();
    heap_stacks_inherit();
    pools_inherit();
    arenas_inherit();
    wrap_inherit();
    if (mapped_is_on) mapped_inherit();
    struct cairn_thread *record = region_take(&threads, sizeof *record);
    if (!record) return false;
    *record = (struct cairn_thread){.name = "(inherited)", .slot = CAIRN_SLOT_SHARED};
    record->is_ended = 1;
    if (settings.has_events) event_log_inherit_begin();
    live_each(fork_count, record);
    if (event_mode_samples()) sampling_inherit(record);
    cells.totals->live_bytes = record->net_bytes;
    cells.totals->live_blocks = (int64_t)record->allocations;
    return true;
}
