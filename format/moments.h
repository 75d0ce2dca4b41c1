// SPDX-License-Identifier: Apache-2.0
// Taking a moment (format.h, cairn_moment): the process does it, and so does the tool, in the
// memory that both have mapped. The process need not take note: it goes on, and cells that change
// later save what they held.
//
// In this order, so that a cell that turns to the new epoch finds that there is something to save:
// the moment is in the table, `moment_epoch` is raised, then the epoch moves.
#ifndef CAIRN_MOMENTS_H
#define CAIRN_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"

// The table of a recording. `moments` has room for CAIRN_MOMENT_LIMIT entries.
struct cairn_moment_table {
    struct cairn_header *header;
    struct cairn_moment *moments;
    uint64_t *used_bytes;  // of the section
};

enum cairn_moment_result {
    CAIRN_MOMENT_TAKEN,
    CAIRN_MOMENT_BUSY,  // somebody else is taking one: try again
    CAIRN_MOMENT_FULL,  // the table is full of moments that somebody asked for
};

static inline bool cairn_moment_is_wanted(const struct cairn_moment *moment) {
    return moment->reason != CAIRN_MOMENT_CHURN && moment->reason != CAIRN_MOMENT_HIGH;
}

static inline uint64_t cairn_moment_count(const struct cairn_moment_table *table) {
    uint64_t used = __atomic_load_n(table->used_bytes, __ATOMIC_ACQUIRE) / sizeof *table->moments;
    return used < CAIRN_MOMENT_LIMIT ? used : CAIRN_MOMENT_LIMIT;
}

// Leaves out every second moment that nobody asked for, and doubles the distances. The lock is
// held.
static inline void cairn_moments_thin(struct cairn_moment_table *table) {
    const uint32_t most_permille = 1000;
    struct cairn_pace *pace = &table->header->pace;
    uint64_t kept = 0, count = cairn_moment_count(table);
    bool is_left_out = false;
    __atomic_fetch_add(&pace->thin_count, 1, __ATOMIC_ACQ_REL);
    for (uint64_t i = 0; i < count; i++) {
        if (!cairn_moment_is_wanted(&table->moments[i])) {
            is_left_out = !is_left_out;
            if (is_left_out) continue;
        }
        if (kept != i) table->moments[kept] = table->moments[i];
        kept++;
    }
    __atomic_store_n(table->used_bytes, kept * sizeof *table->moments, __ATOMIC_RELEASE);
    __atomic_fetch_add(&pace->thin_count, 1, __ATOMIC_ACQ_REL);
    pace->every_bytes *= 2;
    if (pace->step_permille < most_permille) pace->step_permille *= 2;
}

static inline void cairn_moment_begin_epoch(struct cairn_moment_table *table,
                                            struct cairn_moment *moment) {
    struct cairn_totals *totals = &table->header->totals;
    uint64_t end = (uint64_t)(moment + 1 - table->moments) * sizeof *moment;
    uint32_t epoch = __atomic_load_n(&totals->epoch, __ATOMIC_ACQUIRE);
    do {
        moment->epoch = epoch + 1;
        __atomic_store_n(&totals->moment_epoch, epoch + 1, __ATOMIC_RELEASE);
        __atomic_store_n(table->used_bytes, end, __ATOMIC_RELEASE);
    } while (!__atomic_compare_exchange_n(&totals->epoch, &epoch, epoch + 1, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

// Takes a moment with the reason, time, totals and label of `wanted`. `taker` is the calling
// thread's id or CAIRN_PACE_TOOL; a lock that it holds already was left behind.
static inline enum cairn_moment_result cairn_moment_take(struct cairn_moment_table *table,
                                                         const struct cairn_moment *wanted,
                                                         uint32_t taker) {
    struct cairn_header *header = table->header;
    struct cairn_pace *pace = &header->pace;
    uint32_t owner = 0;
    if (!__atomic_compare_exchange_n(&pace->lock, &owner, taker, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED) &&
        owner != taker)
        return CAIRN_MOMENT_BUSY;
    // A taker that was torn away in the middle of it left an odd number.
    if (pace->thin_count % 2) __atomic_fetch_add(&pace->thin_count, 1, __ATOMIC_ACQ_REL);
    if (cairn_moment_count(table) == CAIRN_MOMENT_LIMIT) cairn_moments_thin(table);
    uint64_t count = cairn_moment_count(table);
    bool has_room = count < CAIRN_MOMENT_LIMIT;
    if (has_room) {
        struct cairn_moment *moment = &table->moments[count];
        bool is_mark = wanted->reason == CAIRN_MOMENT_MARK;
        *moment = *wanted;
        moment->generation = __atomic_load_n(&header->totals.generation, __ATOMIC_RELAXED);
        if (is_mark) {
            moment->generation++;
            __atomic_store_n(&header->totals.generation, moment->generation, __ATOMIC_RELEASE);
        }
        cairn_moment_begin_epoch(table, moment);
    } else {
        __atomic_fetch_add(&pace->refused, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&pace->lock, 0, __ATOMIC_RELEASE);
    return has_room ? CAIRN_MOMENT_TAKEN : CAIRN_MOMENT_FULL;
}

#endif
