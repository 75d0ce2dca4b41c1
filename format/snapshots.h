// SPDX-License-Identifier: Apache-2.0
// Taking a snapshot (format.h, cairn_snapshot): the process does it, and so does the tool, in the
// memory that both have mapped. The process need not take note: it goes on, and cells that change
// later save what they held.
//
// In this order, so that a cell that turns to the new epoch finds that there is something to save:
// the snapshot is in the table, `snapshot_epoch` is raised, then the epoch moves.
#ifndef CAIRN_SNAPSHOTS_H
#define CAIRN_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"

// The table of a recording. `snapshots` has room for CAIRN_SNAPSHOT_LIMIT entries.
struct cairn_snapshot_table {
    struct cairn_header *header;
    struct cairn_snapshot *snapshots;
    uint64_t *used_bytes;  // of the section
};

enum cairn_snapshot_result {
    CAIRN_SNAPSHOT_TAKEN,
    CAIRN_SNAPSHOT_BUSY,  // somebody else is taking one: try again
    CAIRN_SNAPSHOT_FULL,  // the table is full of snapshots that somebody asked for
};

static inline bool cairn_snapshot_is_wanted(const struct cairn_snapshot *snapshot) {
    return snapshot->reason != CAIRN_SNAPSHOT_CHURN && snapshot->reason != CAIRN_SNAPSHOT_HIGH &&
           snapshot->reason != CAIRN_SNAPSHOT_LOW;
}

static inline uint64_t cairn_snapshot_count(const struct cairn_snapshot_table *table) {
    uint64_t used = __atomic_load_n(table->used_bytes, __ATOMIC_ACQUIRE) / sizeof *table->snapshots;
    return used < CAIRN_SNAPSHOT_LIMIT ? used : CAIRN_SNAPSHOT_LIMIT;
}

// Leaves out every second snapshot that nobody asked for, and doubles the distances. The lock is
// held.
static inline void cairn_snapshots_thin(struct cairn_snapshot_table *table) {
    const uint32_t most_permille = 1000;
    struct cairn_pace *pace = &table->header->pace;
    uint64_t kept = 0, count = cairn_snapshot_count(table);
    bool is_left_out = false;
    __atomic_fetch_add(&pace->thin_count, 1, __ATOMIC_ACQ_REL);
    for (uint64_t i = 0; i < count; i++) {
        if (!cairn_snapshot_is_wanted(&table->snapshots[i])) {
            is_left_out = !is_left_out;
            if (is_left_out) continue;
        }
        if (kept != i) table->snapshots[kept] = table->snapshots[i];
        kept++;
    }
    __atomic_store_n(table->used_bytes, kept * sizeof *table->snapshots, __ATOMIC_RELEASE);
    __atomic_fetch_add(&pace->thin_count, 1, __ATOMIC_ACQ_REL);
    pace->every_bytes *= 2;
    if (pace->step_permille < most_permille) pace->step_permille *= 2;
}

static inline void cairn_snapshot_begin_epoch(struct cairn_snapshot_table *table,
                                              struct cairn_snapshot *snapshot) {
    struct cairn_totals *totals = &table->header->totals;
    uint64_t end = (uint64_t)(snapshot + 1 - table->snapshots) * sizeof *snapshot;
    uint32_t epoch = __atomic_load_n(&totals->epoch, __ATOMIC_ACQUIRE);
    do {
        snapshot->epoch = epoch + 1;
        __atomic_store_n(&totals->snapshot_epoch, epoch + 1, __ATOMIC_RELEASE);
        __atomic_store_n(table->used_bytes, end, __ATOMIC_RELEASE);
    } while (!__atomic_compare_exchange_n(&totals->epoch, &epoch, epoch + 1, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

// Takes a snapshot with the reason, time, totals and label of `wanted`. `taker` is the calling
// thread's id or CAIRN_PACE_TOOL; a lock that it holds already was left behind.
static inline enum cairn_snapshot_result cairn_snapshot_take(struct cairn_snapshot_table *table,
                                                             const struct cairn_snapshot *wanted,
                                                             uint32_t taker) {
    struct cairn_header *header = table->header;
    struct cairn_pace *pace = &header->pace;
    uint32_t owner = 0;
    if (!__atomic_compare_exchange_n(&pace->lock, &owner, taker, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED) &&
        owner != taker)
        return CAIRN_SNAPSHOT_BUSY;
    // A taker that was torn away in the middle of it left an odd number.
    if (pace->thin_count % 2) __atomic_fetch_add(&pace->thin_count, 1, __ATOMIC_ACQ_REL);
    if (cairn_snapshot_count(table) == CAIRN_SNAPSHOT_LIMIT) cairn_snapshots_thin(table);
    uint64_t count = cairn_snapshot_count(table);
    bool has_room = count < CAIRN_SNAPSHOT_LIMIT;
    if (has_room) {
        struct cairn_snapshot *snapshot = &table->snapshots[count];
        bool is_mark = wanted->reason == CAIRN_SNAPSHOT_MARK;
        *snapshot = *wanted;
        snapshot->generation = __atomic_load_n(&header->totals.generation, __ATOMIC_RELAXED);
        if (is_mark) {
            snapshot->generation++;
            __atomic_store_n(&header->totals.generation, snapshot->generation, __ATOMIC_RELEASE);
        }
        cairn_snapshot_begin_epoch(table, snapshot);
    } else {
        __atomic_fetch_add(&pace->refused, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&pace->lock, 0, __ATOMIC_RELEASE);
    return has_room ? CAIRN_SNAPSHOT_TAKEN : CAIRN_SNAPSHOT_FULL;
}

#endif
