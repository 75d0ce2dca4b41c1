// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/figures.h"

#include <string.h>

#include "format/sample.h"
#include "runtime/record/sampling.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/block_stats.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/intern.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/veil.h"

static uint64_t section_count(struct region region, uint64_t entry_bytes) {
    uint64_t used = region.used_bytes ? __atomic_load_n(region.used_bytes, __ATOMIC_ACQUIRE) : 0;
    if (used > region.capacity_bytes) used = region.capacity_bytes;
    return veil_readable_bytes(region.base, used) / entry_bytes;
}

void figures_of_process(struct cairn_stats *stats) {
    struct region region = sink_region(CAIRN_SECTION_THREADS);
    const struct cairn_thread *threads = (const struct cairn_thread *)region.base;
    for (uint64_t i = 0; i < section_count(region, sizeof *threads); i++) {
        stats->allocations += __atomic_load_n(&threads[i].allocations, __ATOMIC_RELAXED);
        stats->allocated_bytes += __atomic_load_n(&threads[i].allocated_bytes, __ATOMIC_RELAXED);
        stats->frees += cairn_thread_frees(&threads[i]);
        stats->live_bytes += __atomic_load_n(&threads[i].net_bytes, __ATOMIC_RELAXED);
    }
    stats->peak_bytes = (int64_t)__atomic_load_n(&sink.header->totals.peak_bytes, __ATOMIC_RELAXED);
    if (stats->live_bytes > stats->peak_bytes) stats->peak_bytes = stats->live_bytes;
}

static uint32_t code_words(uint32_t code) {
    if (code < CAIRN_CODE_ESCAPE) return 1;
    switch (CAIRN_CODE_KIND(code)) {
    case CAIRN_CODE_MODULE:
    case CAIRN_CODE_NAME:
        return 2;
    case CAIRN_CODE_FULL:
    case CAIRN_CODE_PYTHON:
        return MODULE_CODE_WORDS;
    default:
        return 1;
    }
}

// The region that a cell's record ends with; 0: none.
static uint32_t region_of_cell(uint32_t id) {
    uint64_t limit = section_count(stacks.records, sizeof(uint32_t));
    const uint32_t *words = (const uint32_t *)stacks.records.base;
    uint32_t record = cells.items[id].record, last = 0;
    if (!record || record + 1 >= limit || words[record] & CAIRN_RECORD_SHORT) return 0;
    if (words[record + 1] & CAIRN_RECORD_FOREIGN) {
        uint32_t owner = words[record];
        return owner && owner < cells.id_limit && owner != id ? region_of_cell(owner) : 0;
    }
    uint64_t at = record + 2;
    for (uint32_t i = CAIRN_RECORD_NEW(words[record + 1]); i > 0 && at < limit; i--) {
        last = words[at];
        at += code_words(last);
    }
    bool is_region = last >= CAIRN_CODE_ESCAPE && CAIRN_CODE_KIND(last) == CAIRN_CODE_REGION;
    return is_region ? CAIRN_CODE_VALUE(last) : 0;
}

// The cell that counts the allocations of the blocks whose frees this one counts, or itself.
static uint32_t owner_of_cell(uint32_t id) {
    uint64_t limit = section_count(stacks.records, sizeof(uint32_t));
    const uint32_t *words = (const uint32_t *)stacks.records.base;
    uint32_t record = cells.items[id].record;
    bool is_foreign = record + 1 < limit && !(words[record] & CAIRN_RECORD_SHORT) &&
                      words[record + 1] & CAIRN_RECORD_FOREIGN;
    return is_foreign && words[record] < cells.id_limit ? words[record] : id;
}

// A scope's parent has a lower number, so the way outwards ends.
static bool is_within(uint32_t id, const char *name) {
    while (id && id < scope_limit()) {
        const struct cairn_scope *scope = scope_at(id);
        if (!strcmp(scope_name(scope), name)) return true;
        id = scope->parent < id ? scope->parent : 0;
    }
    return false;
}

// Of samples: the blocks beyond themselves that they stand for.
static void add_estimates(uint32_t id, struct cairn_stats *stats) {
    struct region region = sink_region(CAIRN_SECTION_SAMPLE_CELLS);
    const struct cairn_sample_entry *entries = (const struct cairn_sample_entry *)region.base;
    if (!region.base || id >= section_count(region, sizeof *entries)) return;
    stats->allocations += (uint64_t)((int64_t)entries[id].sums.extra_calls / CAIRN_SAMPLE_ONE);
    stats->frees += (uint64_t)((int64_t)entries[id].sums.extra_frees / CAIRN_SAMPLE_ONE);
}

static bool is_sampling(void) {
    return sampling.record && __atomic_load_n(&sampling.record->is_on, __ATOMIC_RELAXED);
}

static void add_cell(uint32_t id, struct cairn_stats *stats) {
    const unsigned high_shift = 32;
    const struct cairn_cell *cell = &cells.items[id];
    const struct cairn_cell_rare *rare = cell_rare(id);
    uint64_t freed_bytes = __atomic_load_n(&cell->freed_bytes, __ATOMIC_RELAXED);
    uint64_t allocated_bytes = __atomic_load_n(&cell->allocated_bytes, __ATOMIC_RELAXED);
    stats->allocations += cell->calls | (rare ? (uint64_t)rare->calls_high << high_shift : 0);
    stats->frees += cell->frees | (rare ? (uint64_t)rare->frees_high << high_shift : 0);
    stats->allocated_bytes += allocated_bytes;
    stats->live_bytes += (int64_t)(allocated_bytes - freed_bytes);
    if (is_sampling()) add_estimates(id, stats);
}

bool figures_of_region(const char *name, struct cairn_stats *stats) {
    bool is_there = false;
    for (uint32_t id = 1; id < scope_limit(); id++) {
        const struct cairn_scope *scope = scope_at(id);
        int64_t rise_bytes = __atomic_load_n(&scope->rise_bytes, __ATOMIC_RELAXED);
        if (scope->kind != CAIRN_SCOPE_REGION || strcmp(scope_name(scope), name) != 0) continue;
        is_there = true;
        if (rise_bytes > stats->peak_bytes) stats->peak_bytes = rise_bytes;
    }
    uint64_t count = section_count(cells.region, sizeof *cells.items);
    for (uint32_t id = CAIRN_CELL_OTHER + 1; is_there && id < count && id < cells.id_limit; id++)
        if (cells.items[id].calls || cells.items[id].frees)
            if (is_within(region_of_cell(id), name)) add_cell(id, stats);
    return is_there;
}

bool figures_of_pool(const char *name, struct cairn_stats *stats) {
    bool is_there = false;
    for (uint32_t id = 1; id < scope_limit(); id++) {
        const struct cairn_scope *scope = scope_at(id);
        if (scope->kind != CAIRN_SCOPE_POOL || strcmp(scope_name(scope), name) != 0) continue;
        is_there = true;
        stats->allocations += __atomic_load_n(&scope->allocations, __ATOMIC_RELAXED);
        stats->frees += __atomic_load_n(&scope->frees, __ATOMIC_RELAXED);
        stats->allocated_bytes += __atomic_load_n(&scope->allocated_bytes, __ATOMIC_RELAXED);
        stats->live_bytes += (int64_t)(scope->allocated_bytes - scope->freed_bytes);
        stats->peak_bytes += __atomic_load_n(&scope->peak_bytes, __ATOMIC_RELAXED);
    }
    return is_there;
}

static unsigned bits_of(uint64_t size) {
    const unsigned word_bits = 64;
    return size ? word_bits - (unsigned)__builtin_clzll(size) : 0;
}

// The number of a cell's entry in SIZES; 0: it has none.
static uint32_t sizes_of(uint32_t id) {
    const struct cairn_cell_rare *rare = cell_rare(id);
    return rare ? rare->sizes : 0;
}

// A cell of one size has it itself. Otherwise sizes are counted but for the usual one, whose
// number is what is left of the calls.
static void add_sizes(uint32_t id, uint64_t calls, struct cairn_histogram *histogram) {
    const struct region *region = &uses.sizes;
    uint32_t number = sizes_of(id);
    bool is_known = number || cells.items[id].size != CAIRN_SIZE_VARIES;
    uint64_t usual = calls, count = section_count(*region, sizeof(struct cairn_sizes));
    if (!is_known || number > count) {
        histogram->unknown_allocations += calls;
        return;
    }
    if (number) {
        const struct cairn_sizes *sizes = (const struct cairn_sizes *)region->base + number - 1;
        for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) {
            histogram->allocations[bits_of(sizes->sizes[i])] += sizes->counts[i];
            usual -= sizes->counts[i];
        }
        for (unsigned i = 0; i < CAIRN_SIZES_BUCKETS; i++) {
            histogram->allocations[i] += sizes->buckets[i];
            usual -= sizes->buckets[i];
        }
        histogram->unknown_allocations += sizes->unknown_calls;
        usual -= sizes->unknown_calls;
    }
    if ((int64_t)usual > 0) histogram->allocations[bits_of(cells.items[id].size)] += usual;
}

bool figures_of_sizes(struct cairn_histogram *histogram) {
    if (is_sampling()) return false;
    uint64_t count = section_count(cells.region, sizeof *cells.items);
    for (uint32_t id = CAIRN_CELL_OTHER + 1; id < count && id < cells.id_limit; id++) {
        struct cairn_stats of_cell = {0};
        add_cell(id, &of_cell);
        if (!of_cell.allocations && !of_cell.frees) continue;
        if (of_cell.allocations) add_sizes(id, of_cell.allocations, histogram);
        uint32_t owner = owner_of_cell(id);
        uint64_t held = of_cell.allocations - of_cell.frees;
        const struct cairn_cell *cell = &cells.items[owner];
        bool is_one_size = cell->size != CAIRN_SIZE_VARIES && !sizes_of(owner) && cell->calls;
        if (is_one_size)
            histogram->live[bits_of(cell->size)] += held;
        else
            histogram->unknown_live += held;
    }
    return true;
}
