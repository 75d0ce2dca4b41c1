// SPDX-License-Identifier: Apache-2.0
// Cells: the counters of one (thread, stack), in the recording. See format.h for the layout and
// docs/reference/format.md for how a reader adds them up.
//
// A cell has one writer, the thread slot that owns its block; plain stores suffice. The only cell
// that all threads write is CAIRN_CELL_OTHER, with atomic additions.
//
// The peak is kept lazily. A new peak only moves the epoch. Every cell whose epoch is older still
// holds its value at the peak; the first change of such a cell saves that value (cell_turn_slow)
// and then brings its epoch up to date. So do snapshots, of which there can be many (values.h).
#ifndef RUNTIME_STACK_CELLS_H
#define RUNTIME_STACK_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/stack/values.h"
#include "runtime/sys/colour.h"
#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

struct cells {
    struct cairn_cell *items;
    struct cairn_cell_rare *rare;
    uint16_t *owners;
    struct cairn_totals *totals;
    struct region region, rare_region, owner_region;
    uint32_t id_limit;
    uint32_t fast_limit;  // the same, or 0: frees that do more than count leave the fast path
};

extern HIDDEN struct cells cells;

// Cells before those of the first thread; they belong to all.
enum { CELLS_SHARED = COLOUR_CELLS / sizeof(struct cairn_cell) };

// Takes the shared cells. False without memory.
bool cells_init(void);

// So many blocks of CAIRN_CELL_BLOCK cells, one behind the other, for a slot; the first id, or 0.
uint32_t cells_take_blocks(uint16_t slot, uint32_t count);

// What few cells have of this one: NULL if there is nothing yet, or if there is no room for it.
ALWAYS_INLINE struct cairn_cell_rare *cell_rare(uint32_t id) {
    uint32_t number = cells.items[id].rare;
    return number ? &cells.rare[number - 1] : NULL;
}
struct cairn_cell_rare *cell_rare_make(uint32_t id);

// `log` is where the calling thread saves values at snapshots.
void cell_turn_slow(struct value_log *log, uint32_t id, uint32_t epoch);
// Whoever counts allocations calls this for one in some CAIRN_WATCHED_EVERY of them, of any stack,
// so that the rare part is there before it is needed, and slack_bytes, whose end no event looks
// for, never passes it. From the middle of these numbers to their end are 500,000 allocations and
// more: that none of them is met has a chance of e^-1000.
void cell_look_ahead(uint32_t id);
void cell_other_alloc(struct value_log *log, uint64_t size);
void cell_other_free(struct value_log *log, uint64_t size);

ALWAYS_INLINE uint16_t cell_owner(uint32_t id) {
    return cells.owners[id / CAIRN_CELL_BLOCK];
}

// True if the cell changed in the present epoch, so that it has nothing to save.
ALWAYS_INLINE bool cell_is_current(const struct cairn_cell *cell) {
    return cell->epoch == __atomic_load_n(&cells.totals->epoch, __ATOMIC_RELAXED);
}

// Brings a cell to `epoch`, which was read before, if it is there already or by the turn that is
// usual while a heap grows, when each free may leave a new peak behind: what cell_turn_slow does
// where a peak came after the cell's last change, and no snapshot. False: it is another turn, and
// nothing was done. The blocks are a difference of low halves, which is that of the whole numbers
// in as many bits.
ALWAYS_INLINE bool cell_turn_fast(struct cairn_cell *cell, uint32_t epoch) {
    if (cell->epoch == epoch) return true;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint32_t peak_epoch = __atomic_load_n(&cells.totals->peak_epoch, __ATOMIC_RELAXED);
    uint32_t snapshot_epoch = __atomic_load_n(&cells.totals->snapshot_epoch, __ATOMIC_RELAXED);
    bool has_peak = (int32_t)(cell->epoch - peak_epoch) < 0;
    bool has_snapshot = (int32_t)(cell->epoch - snapshot_epoch) < 0;
    if (unlikely(!has_peak) || unlikely(has_snapshot)) return false;
    cell->peak_bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes);
    cell->peak_blocks = (int32_t)(cell->calls - cell->frees);
    publish_barrier();
    cell->epoch = epoch;
    return true;
}

// Brings the cell to the present epoch before it changes.
ALWAYS_INLINE void cell_turn(struct value_log *log, struct cairn_cell *cell, uint32_t id) {
    uint32_t epoch = __atomic_load_n(&cells.totals->epoch, __ATOMIC_RELAXED);
    if (unlikely(!cell_turn_fast(cell, epoch))) cell_turn_slow(log, id, epoch);
}

// Adds one to a number of 32 bits of the cell, whose part above lies at `high_at` in the rare part.
// Without that, for which there was no room, it stays at its end. In line, since a call in the
// hooks would cost registers.
ALWAYS_INLINE void cell_count_up(const struct cairn_cell *cell, uint32_t *low, size_t high_at) {
    if (likely(++*low != 0)) return;
    if (cell->rare)
        ++*(uint16_t *)((uint8_t *)&cells.rare[cell->rare - 1] + high_at);
    else
        *low = UINT32_MAX;
}

// Counts in a cell of this thread that is of the present epoch.
ALWAYS_INLINE void cell_count_alloc(struct cairn_cell *cell, uint64_t size) {
    cell->allocated_bytes += size;
    cell_count_up(cell, &cell->calls, offsetof(struct cairn_cell_rare, calls_high));
}
ALWAYS_INLINE void cell_count_free(struct cairn_cell *cell, uint64_t size) {
    cell->freed_bytes += size;
    cell_count_up(cell, &cell->frees, offsetof(struct cairn_cell_rare, frees_high));
}
ALWAYS_INLINE void cell_count_temporary(struct cairn_cell *cell) {
    cell_count_up(cell, &cell->temporary, offsetof(struct cairn_cell_rare, temporary_high));
}

ALWAYS_INLINE void cell_alloc(struct value_log *log, uint32_t id, uint64_t size) {
    struct cairn_cell *cell = &cells.items[id];
    if (unlikely(id == CAIRN_CELL_OTHER)) return cell_other_alloc(log, size);
    cell_turn(log, cell, id);
    cell_count_alloc(cell, size);
}

ALWAYS_INLINE void cell_free(struct value_log *log, uint32_t id, uint64_t size) {
    struct cairn_cell *cell = &cells.items[id];
    if (unlikely(id == CAIRN_CELL_OTHER)) return cell_other_free(log, size);
    cell_turn(log, cell, id);
    cell_count_free(cell, size);
}

#endif
