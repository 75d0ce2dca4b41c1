// SPDX-License-Identifier: Apache-2.0
// The blocks of a process that was attached to, found by the tool. They go the way of what a fork
// inherits (fork.c): cells that no thread owns, so that the thread that frees a block books it in a
// cell of its own for that one; and a thread's entry that has ended, which keeps the sums.
//
// Where allocations are sampled these are too, as if they were allocated now.
#include "runtime/inject/existing_blocks.h"

#include <string.h>

#include "runtime/live/live.h"
#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/ages.h"
#include "runtime/record/event.h"
#include "runtime/record/sampling.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/block_stats.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/intern.h"
#include "runtime/stack/module.h"
#include "runtime/sys/region.h"
#include "runtime/thread/gate.h"

// One census: the cell of a kind, and what was entered.
struct taking {
    uint32_t first_cell;  // of the first kind; those of the others follow
    struct cairn_thread *record;
    struct sampling_found found;
};

static uint32_t cell_of_kind(const struct taking *taking, uint64_t kind) {
    return taking->first_cell + (uint32_t)kind;
}

// The record of a kind: two names, which stand for no code.
static bool kind_begin(uint32_t cell, uint32_t group, uint32_t name) {
    const uint32_t frames = 2, words[] = {CAIRN_CELL_NONE, frames,          CAIRN_CODE_NAME,
                                          group,           CAIRN_CODE_NAME, name};
    uint32_t *record = region_take(&stacks.records, sizeof words);
    if (!record) return false;
    memcpy(record, words, sizeof words);
    cells.items[cell].record = (uint32_t)(record - (uint32_t *)stacks.records.base);
    cells.items[cell].epoch = cells.totals->epoch;
    return true;
}

static bool kinds_begin(struct taking *taking, const struct cairn_census *census) {
    const char *text = (const char *)(uintptr_t)census->names;
    uint32_t group = module_string(text);
    uint64_t count = census->kind_count;
    if (!group || count > CAIRN_CENSUS_KINDS_MAX) return false;
    uint32_t blocks = (uint32_t)((count + CAIRN_CELL_BLOCK - 1) / CAIRN_CELL_BLOCK);
    taking->first_cell = blocks ? cells_take_blocks(CAIRN_SLOT_SHARED, blocks) : 0;
    if (blocks && !taking->first_cell) return false;
    for (uint64_t kind = 0; kind < count; kind++) {
        text += strlen(text) + 1;
        uint32_t name = module_string(text);
        if (!name || !kind_begin(cell_of_kind(taking, kind), group, name)) return false;
    }
    return true;
}

static void enter_exact(struct taking *taking, uintptr_t address, uint64_t size, uint32_t cell) {
    struct live_block stale;
    if (!live_insert(address, cell, size, &stale)) return gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    // older than the recording, nobody knows how much
    struct birth *birth = settings.has_ages ? live_birth(address) : NULL;
    if (birth) *birth = (struct birth){0, ages.start_ms};
    cell_count_alloc(&cells.items[cell], size);
    if (!block_stats_has_usual_size(&cells.items[cell], size))
        block_stats_count_other_size(cell, size);
    taking->record->allocations++;
    taking->record->net_bytes += (int64_t)size;
}

static void enter_all(struct taking *taking, const struct cairn_census *census, bool is_sampled) {
    const struct cairn_census_block *blocks =
        (const struct cairn_census_block *)(uintptr_t)census->blocks;
    const uint64_t kind_mask = (1u << CAIRN_CENSUS_KIND_BITS) - 1;
    for (uint64_t i = 0; i < census->block_count; i++) {
        uint64_t size = blocks[i].room_and_kind >> CAIRN_CENSUS_KIND_BITS;
        uint64_t kind = blocks[i].room_and_kind & kind_mask;
        if (kind >= census->kind_count) continue;
        uint32_t cell = cell_of_kind(taking, kind);
        if (is_sampled)
            sampling_find(&taking->found, (const void *)(uintptr_t)blocks[i].address, size, cell);
        else
            enter_exact(taking, (uintptr_t)blocks[i].address, size, cell);
    }
}

// Nobody has published anything yet: the totals begin with these blocks.
static void totals_begin_with(struct cairn_thread *record, bool is_sampled) {
    uint64_t blocks = record->allocations;
    if (is_sampled) {
        record->is_sampled = 1;
        blocks = record->estimated_blocks > 0
                     ? (uint64_t)(record->estimated_blocks / CAIRN_SAMPLE_ONE)
                     : 0;
        record->allocations = blocks;
    }
    record->allocated_bytes = (uint64_t)record->net_bytes;
    cells.totals->live_bytes += record->net_bytes;
    cells.totals->live_blocks += (int64_t)blocks;
}

int existing_blocks_take(const struct cairn_census *census) {
    struct taking taking = {0};
    bool is_sampled = probes_event.mode == EVENT_SAMPLED;
    if (process_state() != PROCESS_RECORDING) return CAIRN_ATTACHMENT_NOT_LOADED;
    if (probes_event.mode == EVENT_OFF) return CAIRN_ATTACHMENT_IS_OFF;
    struct region threads = sink_region(CAIRN_SECTION_THREADS);
    taking.record = region_take(&threads, sizeof *taking.record);
    if (!taking.record) return CAIRN_ATTACHMENT_NO_SPACE;
    *taking.record = (struct cairn_thread){.name = "(before attach)", .slot = CAIRN_SLOT_SHARED};
    taking.record->is_ended = 1;
    if (is_sampled) sampling_find_begin(&taking.found, taking.record, census->room_bytes);
    if (!kinds_begin(&taking, census)) return CAIRN_ATTACHMENT_NO_SPACE;
    enter_all(&taking, census, is_sampled);
    if (is_sampled) sampling_find_end(&taking.found);
    totals_begin_with(taking.record, is_sampled);
    sink.header->has_census = 1;
    return CAIRN_ATTACHMENT_DONE;
}
