// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/values.h"

#include "runtime/sys/veil.h"

struct values values;

// Chunks looked through before a new one is taken, and the free entries that make one worth using.
enum { CHUNK_ENTRIES = 32, CHUNKS_TRIED = 16, FREE_LEAST = 8 };

static struct cairn_value *chunk_at(uint32_t number) {
    return (struct cairn_value *)values.entries.base + (uint64_t)(number - 1) * CHUNK_ENTRIES;
}

static uint32_t snapshot_count(void) {
    uint64_t count =
        __atomic_load_n(values.snapshot_bytes, __ATOMIC_ACQUIRE) / sizeof *values.snapshots;
    return (uint32_t)(count < CAIRN_SNAPSHOT_LIMIT ? count : CAIRN_SNAPSHOT_LIMIT);
}

// The number of the first snapshot after `epoch`.
static uint32_t snapshot_after(uint32_t epoch, uint32_t count) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if ((int32_t)(values.snapshots[middle].epoch - epoch) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// A snapshot is left that the value is for. While snapshots are being left out every value is
// needed.
static bool is_needed(const struct cairn_value *value) {
    const uint32_t *thin_count = &values.header->pace.thin_count;
    uint32_t before = __atomic_load_n(thin_count, __ATOMIC_ACQUIRE), count = snapshot_count();
    uint32_t number = snapshot_after(value->from_epoch, count);
    bool is_covered =
        number < count && (int32_t)(values.snapshots[number].epoch - value->to_epoch) <= 0;
    return is_covered || before % 2 || before != __atomic_load_n(thin_count, __ATOMIC_ACQUIRE);
}

// Frees the entries that are not needed; how many are free then.
static uint32_t chunk_sweep(struct cairn_value *chunk) {
    uint32_t free_count = 0;
    for (uint32_t i = 1; i < CHUNK_ENTRIES; i++) {
        if (chunk[i].cell && !is_needed(&chunk[i]))
            __atomic_store_n(&chunk[i].cell, 0, __ATOMIC_RELEASE);
        free_count += chunk[i].cell == 0;
    }
    return free_count;
}

// Goes on with a chunk that has room again; false: none of those looked at has.
static bool log_reuse(struct value_log *log) {
    uint32_t thin_count = __atomic_load_n(&values.header->pace.thin_count, __ATOMIC_ACQUIRE);
    if (!log->pass && thin_count != log->thin_count) {
        log->thin_count = thin_count;
        log->pass = log->first;
    }
    for (int i = 0; i < CHUNKS_TRIED && log->pass; i++) {
        uint32_t number = log->pass;
        struct cairn_value *chunk = chunk_at(number);
        log->pass = chunk->from_epoch;
        if (chunk_sweep(chunk) < FREE_LEAST) continue;
        log->current = number;
        log->place = 1;
        return true;
    }
    return false;
}

static bool log_extend(struct value_log *log) {
    struct cairn_value *chunk = region_take(&values.entries, CHUNK_ENTRIES * sizeof *chunk);
    if (!chunk) return false;
    uint32_t number =
        (uint32_t)(chunk - (struct cairn_value *)values.entries.base) / CHUNK_ENTRIES + 1;
    const uint64_t samples_bytes = CHUNK_ENTRIES * sizeof(struct cairn_sample_value);
    if (values_have_samples() && !region_reach(&values.samples, number * samples_bytes))
        return false;
    if (log->last) chunk_at(log->last)->from_epoch = number;
    if (!log->first) {
        log->first = number;
        log->thin_count = __atomic_load_n(&values.header->pace.thin_count, __ATOMIC_ACQUIRE);
    }
    log->last = log->current = number;
    log->place = 1;
    return true;
}

static struct cairn_value *log_find_room(struct value_log *log) {
    do {
        struct cairn_value *chunk = log->current ? chunk_at(log->current) : NULL;
        for (; chunk && log->place < CHUNK_ENTRIES; log->place++)
            if (!chunk[log->place].cell) return &chunk[log->place];
    } while (log_reuse(log) || log_extend(log));
    return NULL;
}

static COLD void count_missing(const struct cairn_value *value) {
    uint32_t count = snapshot_count();
    __atomic_fetch_add(&values.header->pace.missing_values, 1, __ATOMIC_RELAXED);
    for (uint32_t i = snapshot_after(value->from_epoch, count); i < count; i++) {
        struct cairn_snapshot *snapshot = (struct cairn_snapshot *)&values.snapshots[i];
        if ((int32_t)(snapshot->epoch - value->to_epoch) > 0) return;
        __atomic_fetch_add(&snapshot->missing_values, 1, __ATOMIC_RELAXED);
    }
}

// What stands beside the cell changes with it, so it is still as it was.
static void save_samples(const struct cairn_value *entry, const struct cairn_value *value,
                         uint64_t calls) {
    const struct cairn_value *entries = (const struct cairn_value *)values.entries.base;
    struct cairn_sample_value *kept =
        (struct cairn_sample_value *)values.samples.base + (entry - entries);
    *kept = (struct cairn_sample_value){.calls = calls, .frees = calls - (uint64_t)value->blocks};
    const struct region *beside = &values.sample_cells;
    const struct cairn_sample_entry *shadow_table_cell =
        (const struct cairn_sample_entry *)beside->base + value->cell;
    const struct cairn_sample_cell *cell = &shadow_table_cell->sums;
    if (((uint64_t)value->cell + 1) * sizeof *shadow_table_cell >
        __atomic_load_n(beside->used_bytes, __ATOMIC_RELAXED))
        return;
    kept->extra = cell->extra_calls - cell->extra_frees;
    kept->allocated_variance = cell->allocated_variance;
    kept->freed_variance = cell->freed_variance;
    kept->calls_variance = cell->calls_variance;
    kept->frees_variance = cell->frees_variance;
}

void values_save(struct value_log *log, const struct cairn_value *value, uint64_t calls) {
    struct cairn_value *entry = log_find_room(log);
    if (!entry) return count_missing(value);
    if (values_have_samples()) save_samples(entry, value, calls);
    entry->from_epoch = value->from_epoch;
    entry->to_epoch = value->to_epoch;
    entry->blocks = value->blocks;
    entry->bytes = value->bytes;
    __atomic_store_n(&entry->cell, value->cell, __ATOMIC_RELEASE);
}

COLD void values_expect(uint32_t thread_count) {
    if (!values.entries.base) return;
    uint64_t bytes = (uint64_t)thread_count * CHUNK_ENTRIES * sizeof(struct cairn_value);
    uint64_t used = __atomic_load_n(values.entries.used_bytes, __ATOMIC_RELAXED);
    uint64_t most = __atomic_load_n(&values.entries.capacity_bytes, __ATOMIC_RELAXED);
    if (used < most && bytes < most - used) veil_lift(values.entries.base + used + bytes);
}
