// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/sample_totals.h"

#include <string.h>

#include "runtime/sys/sys.h"

static struct region entries;

void ledger_open(struct region region) {
    entries = region;
}

void ledger_shrink(uint64_t headroom_bytes) {
    if (entries.base) region_shrink(&entries, headroom_bytes);
}

static struct cairn_sample_entry *entry_of(uint32_t cell) {
    return (struct cairn_sample_entry *)entries.base + cell;
}

static struct cairn_sample_cell *sums_of(uint32_t cell) {
    return &entry_of(cell)->sums;
}

bool ledger_claim(uint32_t cell) {
    return region_reach(&entries, ((uint64_t)cell + 1) * sizeof(struct cairn_sample_entry));
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

static unsigned bits_of(uint32_t size) {
    enum { SIZE_BITS = 32 };
    return size ? SIZE_BITS - (unsigned)__builtin_clz(size) : 0;
}

// The place of the size's number of bits, or a free one; NULL: all are taken by others.
static struct cairn_sample_size *place_of(struct cairn_sample_entry *entry, uint32_t size) {
    for (unsigned i = 0; i < CAIRN_SAMPLE_SIZES; i++) {
        struct cairn_sample_size *place = &entry->sizes[i];
        if (!place->samples || bits_of(place->least_bytes) == bits_of(size)) return place;
    }
    return NULL;
}

static void note_size(struct cairn_sample_entry *entry, uint64_t size_bytes,
                      const struct weight *weight) {
    uint32_t size = size_bytes < UINT32_MAX ? (uint32_t)size_bytes : UINT32_MAX;
    struct cairn_sample_size *place = place_of(entry, size);
    if (!place) return;
    if (!place->samples || size < place->least_bytes) place->least_bytes = size;
    if (size > place->most_bytes) place->most_bytes = size;
    place->calls += (uint64_t)(weight->extra + CAIRN_SAMPLE_ONE);
    place->variance += (float)weight->blocks_variance;
    place->samples++;
}

void ledger_alloc(uint32_t cell, uint64_t size, const struct weight *weight, bool is_shared) {
    struct cairn_sample_cell *entry = sums_of(cell);
    __atomic_fetch_add(&entry->extra_calls, (uint64_t)weight->extra, __ATOMIC_RELAXED);
    add(&entry->allocated_variance, weight->bytes_variance, is_shared);
    add(&entry->calls_variance, weight->blocks_variance, is_shared);
    if (!is_shared) note_size(entry_of(cell), size, weight);
}

void ledger_free(uint32_t cell, const struct weight *weight, bool is_shared) {
    struct cairn_sample_cell *entry = sums_of(cell);
    __atomic_fetch_add(&entry->extra_frees, (uint64_t)weight->extra, __ATOMIC_RELAXED);
    add(&entry->freed_variance, weight->bytes_variance, is_shared);
    add(&entry->frees_variance, weight->blocks_variance, is_shared);
}

void ledger_save_peak(uint32_t cell) {
    struct cairn_sample_cell *entry = sums_of(cell);
    entry->peak_extra = entry->extra_calls - entry->extra_frees;
    entry->peak_bytes_variance = (float)(entry->allocated_variance - entry->freed_variance);
    entry->peak_blocks_variance = (float)(entry->calls_variance - entry->frees_variance);
}
