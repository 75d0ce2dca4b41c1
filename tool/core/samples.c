// SPDX-License-Identifier: Apache-2.0
#include "tool/core/samples.h"

#include <math.h>

#include "format/live_map.h"
#include "format/sample.h"

enum { PLACES_AT_ONCE = 512 };
static const uint64_t places_most = 1 << 24;

// One over the chance of a block of that size (docs/sampling.md).
static double weight_of(const struct cairn_live_sample *entry) {
    if (entry->size_bytes >= entry->rate_bytes) return 1;
    uint64_t size = entry->size_bytes ? entry->size_bytes : 1;
    return -1 / expm1(-(double)size / (double)entry->rate_bytes);
}

static bool add_sample(struct core_samples *samples, uint64_t key,
                       const struct cairn_live_sample *entry, size_t cell_count) {
    const uint64_t most = 1ull << LIVE_ADDRESS_BITS_AARCH64;
    bool is_right = key & 1 && ~key < most && entry->cell && entry->cell < cell_count &&
                    entry->size_bytes < most;
    if (!is_right) {
        samples->rejected_count++;
        return true;
    }
    struct core_sample *sample = array_push(&samples->items);
    if (sample)
        *sample = (struct core_sample){~key, entry->size_bytes, weight_of(entry), entry->cell};
    return sample != NULL;
}

// `count` places of the table from number `first` on.
static bool read_places(const struct core_image *core, const struct cairn_live_samples *table,
                        uint64_t first, size_t count, size_t cell_count,
                        struct core_samples *samples, struct error *error) {
    uint64_t keys[PLACES_AT_ONCE];
    struct cairn_live_sample entry;
    if (!core_read(core, table->keys + first * sizeof *keys, keys, count * sizeof *keys))
        return error_set(error, "the table of its samples is not in it");
    for (size_t i = 0; i < count; i++) {
        if (!keys[i]) continue;
        if (!core_read(core, table->entries + (first + i) * sizeof entry, &entry, sizeof entry))
            return error_set(error, "the table of its samples is not in it");
        if (!add_sample(samples, keys[i], &entry, cell_count))
            return error_set(error, "out of memory");
    }
    return true;
}

static int compare_addresses(const void *a, const void *b) {
    const struct core_sample *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

bool core_read_samples(const struct core_image *core, const struct cairn_header *header,
                       size_t cell_count, struct core_samples *samples, struct error *error) {
    struct cairn_live_samples table;
    bool is_ok = true;
    *samples = (struct core_samples){0};
    if (!header->live_samples || !core_read(core, header->live_samples, &table, sizeof table) ||
        table.count > places_most)
        return true;
    for (uint64_t at = 0; at < table.count && is_ok; at += PLACES_AT_ONCE) {
        uint64_t left = table.count - at;
        size_t count = left < PLACES_AT_ONCE ? (size_t)left : PLACES_AT_ONCE;
        is_ok = read_places(core, &table, at, count, cell_count, samples, error);
    }
    if (samples->items.count)
        qsort(samples->items.items, samples->items.count, sizeof *samples->items.items,
              compare_addresses);
    if (!is_ok) core_free_samples(samples);
    return is_ok;
}

void core_free_samples(struct core_samples *samples) {
    array_free(&samples->items);
}
