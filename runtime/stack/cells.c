// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/cells.h"

struct cells cells;

// The columns that go along with the hot cells up to `end_id`.
static bool cells_claim(uint64_t end_id) {
    uint64_t blocks = end_id / CAIRN_CELL_BLOCK;
    return region_reach(&cells.cold_region, end_id * sizeof *cells.cold) &&
           region_reach(&cells.block_stats_region, end_id * sizeof *cells.use) &&
           region_reach(&cells.owner_region, blocks * sizeof *cells.owners);
}

uint32_t cells_take_block(uint16_t slot) {
    struct cairn_cell *block =
        region_take(&cells.hot_region, CAIRN_CELL_BLOCK * sizeof(struct cairn_cell));
    if (!block) return 0;
    uint64_t id = (uint64_t)(block - cells.hot);
    if (id + CAIRN_CELL_BLOCK > cells.id_limit || !cells_claim(id + CAIRN_CELL_BLOCK)) return 0;
    cells.owners[id / CAIRN_CELL_BLOCK] = slot;
    return (uint32_t)id;
}

bool cells_init(void) {
    struct cairn_cell *block =
        region_take(&cells.hot_region, CAIRN_CELL_BLOCK * sizeof(struct cairn_cell));
    if (!block || !cells_claim(CAIRN_CELL_BLOCK)) return false;
    cells.owners[0] = CAIRN_SLOT_SHARED;
    return true;
}

// Saves what the cell held at the last peak and at snapshots, if they came after its last change.
// The value is written before the epoch, so that a process killed between the two loses nothing.
COLD void cell_turn_slow(struct value_log *log, uint32_t id, uint32_t epoch) {
    struct cairn_cell *cell = &cells.hot[id];
    struct cairn_cell_cold *cold = &cells.cold[id];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint32_t peak_epoch = __atomic_load_n(&cells.totals->peak_epoch, __ATOMIC_RELAXED);
    uint32_t snapshot_epoch = __atomic_load_n(&cells.totals->snapshot_epoch, __ATOMIC_RELAXED);
    uint64_t calls = (uint64_t)cold->calls_high << 32 | cell->calls;
    uint64_t frees = (uint64_t)cold->frees_high << 32 | cell->frees;
    struct cairn_value value = {.cell = id,
                                .from_epoch = cell->epoch,
                                .to_epoch = epoch,
                                .blocks = (int32_t)(calls - frees),
                                .bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes)};
    if ((int32_t)(cell->epoch - peak_epoch) < 0) {
        cold->peak_bytes = value.bytes;
        cold->peak_blocks = value.blocks;
    }
    // nothing is what a reader takes a value for that is not there
    bool is_anything = value.bytes || value.blocks || (calls && values_have_samples());
    if ((int32_t)(cell->epoch - snapshot_epoch) < 0 && is_anything) values_save(log, &value, calls);
    publish_barrier();
    cell->epoch = epoch;
}

COLD void cell_carry_calls_slow(uint32_t id) {
    cells.cold[id].calls_high++;
}

COLD void cell_carry_frees_slow(uint32_t id) {
    cells.cold[id].frees_high++;
}

COLD void cell_other_alloc(struct value_log *log, uint64_t size) {
    struct cairn_cell *cell = &cells.hot[CAIRN_CELL_OTHER];
    cell_turn(log, cell, CAIRN_CELL_OTHER);
    __atomic_fetch_add(&cell->allocated_bytes, size, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&cell->calls, 1, __ATOMIC_RELAXED) == 0)
        __atomic_fetch_add(&cells.cold[CAIRN_CELL_OTHER].calls_high, 1, __ATOMIC_RELAXED);
}

COLD void cell_other_free(struct value_log *log, uint64_t size) {
    struct cairn_cell *cell = &cells.hot[CAIRN_CELL_OTHER];
    cell_turn(log, cell, CAIRN_CELL_OTHER);
    __atomic_fetch_add(&cell->freed_bytes, size, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&cell->frees, 1, __ATOMIC_RELAXED) == 0)
        __atomic_fetch_add(&cells.cold[CAIRN_CELL_OTHER].frees_high, 1, __ATOMIC_RELAXED);
}
