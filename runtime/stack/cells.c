// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/cells.h"

struct cells cells;

// The column that goes along with the cells up to `end_id`.
static bool cells_claim(uint64_t end_id) {
    uint64_t blocks = end_id / CAIRN_CELL_BLOCK;
    return region_reach(&cells.owner_region, blocks * sizeof *cells.owners);
}

static bool cells_take(uint16_t slot, uint32_t count, uint64_t *id) {
    struct cairn_cell *first = region_take(&cells.region, count * sizeof *first);
    if (!first) return false;
    *id = (uint64_t)(first - cells.items);
    if (*id + count > cells.id_limit || !cells_claim(*id + count)) return false;
    for (uint32_t i = 0; i < count; i += CAIRN_CELL_BLOCK)
        cells.owners[(*id + i) / CAIRN_CELL_BLOCK] = slot;
    return true;
}

uint32_t cells_take_blocks(uint16_t slot, uint32_t count) {
    uint64_t id;
    return cells_take(slot, count * CAIRN_CELL_BLOCK, &id) ? (uint32_t)id : 0;
}

bool cells_init(void) {
    uint64_t id;
    if (!cells_take(CAIRN_SLOT_SHARED, CELLS_SHARED, &id)) return false;
    return cell_rare_make(CAIRN_CELL_OTHER) != NULL;  // by no two threads at once later
}

COLD struct cairn_cell_rare *cell_rare_make(uint32_t id) {
    struct cairn_cell_rare *rare = cell_rare(id);
    if (rare) return rare;
    rare = region_take(&cells.rare_region, sizeof *rare);
    if (!rare) return NULL;
    publish_barrier();
    cells.items[id].rare = (uint32_t)(rare - cells.rare) + 1;
    return rare;
}

// Saves what the cell held at the last peak and at snapshots, if they came after its last change.
// The value is written before the epoch, so that a process killed between the two loses nothing.
COLD void cell_turn_slow(struct value_log *log, uint32_t id, uint32_t epoch) {
    struct cairn_cell *cell = &cells.items[id];
    const struct cairn_cell_rare *rare = cell_rare(id);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint32_t peak_epoch = __atomic_load_n(&cells.totals->peak_epoch, __ATOMIC_RELAXED);
    uint32_t snapshot_epoch = __atomic_load_n(&cells.totals->snapshot_epoch, __ATOMIC_RELAXED);
    uint64_t calls = (rare ? (uint64_t)rare->calls_high << 32 : 0) | cell->calls;
    uint64_t frees = (rare ? (uint64_t)rare->frees_high << 32 : 0) | cell->frees;
    struct cairn_value value = {.cell = id,
                                .from_epoch = cell->epoch,
                                .to_epoch = epoch,
                                .blocks = (int32_t)(calls - frees),
                                .bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes)};
    if ((int32_t)(cell->epoch - peak_epoch) < 0) {
        cell->peak_bytes = value.bytes;
        cell->peak_blocks = value.blocks;
    }
    // nothing is what a reader takes a value for that is not there
    bool is_anything = value.bytes || value.blocks || (calls && values_have_samples());
    if ((int32_t)(cell->epoch - snapshot_epoch) < 0 && is_anything) values_save(log, &value, calls);
    publish_barrier();
    cell->epoch = epoch;
}

// Frees and temporary blocks are not more than calls.
void cell_look_ahead(uint32_t id) {
    struct cairn_cell *cell = &cells.items[id];
    const uint32_t middle = CAIRN_SLACK_UNIT;
    if (likely((cell->calls | cell->slack_bytes) < middle) || id == CAIRN_CELL_OTHER) return;
    struct cairn_cell_rare *rare = cell_rare_make(id);
    if (cell->slack_bytes < middle) return;
    cell->slack_bytes -= CAIRN_SLACK_UNIT;
    if (rare) rare->slack_high++;
}

COLD void cell_other_alloc(struct value_log *log, uint64_t size) {
    struct cairn_cell *cell = &cells.items[CAIRN_CELL_OTHER];
    cell_turn(log, cell, CAIRN_CELL_OTHER);
    __atomic_fetch_add(&cell->allocated_bytes, size, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&cell->calls, 1, __ATOMIC_RELAXED) == 0)
        __atomic_fetch_add(&cell_rare(CAIRN_CELL_OTHER)->calls_high, 1, __ATOMIC_RELAXED);
}

COLD void cell_other_free(struct value_log *log, uint64_t size) {
    struct cairn_cell *cell = &cells.items[CAIRN_CELL_OTHER];
    cell_turn(log, cell, CAIRN_CELL_OTHER);
    __atomic_fetch_add(&cell->freed_bytes, size, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&cell->frees, 1, __ATOMIC_RELAXED) == 0)
        __atomic_fetch_add(&cell_rare(CAIRN_CELL_OTHER)->frees_high, 1, __ATOMIC_RELAXED);
}
