// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/ledger.h"

#include <string.h>

#include "runtime/sys/sys.h"

static struct region entries;

void ledger_open(struct region region) {
    entries = region;
}

void ledger_shrink(uint64_t headroom_bytes) {
    if (entries.base) region_shrink(&entries, headroom_bytes);
}

static struct cairn_sample_cell *entry_of(uint32_t cell) {
    return (struct cairn_sample_cell *)entries.base + cell;
}

bool ledger_claim(uint32_t cell) {
    return region_reach(&entries, ((uint64_t)cell + 1) * sizeof(struct cairn_sample_cell));
}

static void add(double *sum, double change, bool is_shared) {
    uint64_t *bits = (uint64_t *)(void *)sum;
    if (!is_shared) {
        *sum += change;
        return;
    }
    uint64_t old = __atomic_load_n(bits, __ATOMIC_RELAXED), next;
    do {
        double value;
        memcpy(&value, &old, sizeof value);
        value += change;
        memcpy(&next, &value, sizeof next);
    } while (
        !__atomic_compare_exchange_n(bits, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void ledger_alloc(uint32_t cell, const struct weight *weight, bool is_shared) {
    struct cairn_sample_cell *entry = entry_of(cell);
    __atomic_fetch_add(&entry->extra_calls, (uint64_t)weight->extra, __ATOMIC_RELAXED);
    add(&entry->allocated_variance, weight->bytes_variance, is_shared);
    add(&entry->calls_variance, weight->blocks_variance, is_shared);
}

void ledger_free(uint32_t cell, const struct weight *weight, bool is_shared) {
    struct cairn_sample_cell *entry = entry_of(cell);
    __atomic_fetch_add(&entry->extra_frees, (uint64_t)weight->extra, __ATOMIC_RELAXED);
    add(&entry->freed_variance, weight->bytes_variance, is_shared);
    add(&entry->frees_variance, weight->blocks_variance, is_shared);
}

void ledger_save_peak(uint32_t cell) {
    struct cairn_sample_cell *entry = entry_of(cell);
    entry->peak_extra = entry->extra_calls - entry->extra_frees;
    entry->peak_bytes_variance = (float)(entry->allocated_variance - entry->freed_variance);
    entry->peak_blocks_variance = (float)(entry->calls_variance - entry->frees_variance);
}
