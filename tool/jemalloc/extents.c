// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/extents.h"

#include <string.h>

struct reading {
    const struct memory_reader *memory;
    struct jemalloc_extents *extents;
    uint64_t last_record;  // of the page before
    bool is_out_of_memory;
};

static bool add_extent(struct reading *reading, const struct jemalloc_record *record,
                       uint64_t address) {
    struct jemalloc_extents *extents = reading->extents;
    const struct jemalloc_facts facts = jemalloc_record_facts(extents->version, record);
    struct jemalloc_extent *slot = array_push(&extents->items);
    if (!slot) return false;
    *slot = (struct jemalloc_extent){.address = record->address,
                                     .bytes = jemalloc_record_bytes(record),
                                     .record = address,
                                     .state = (enum jemalloc_state)facts.state,
                                     .is_slab = facts.is_slab,
                                     .size_class = (uint8_t)facts.size_class,
                                     .free_count = (uint16_t)facts.free_count};
    memcpy(slot->free, record->free, sizeof slot->free);
    return spans_add(&extents->tables, address, address + JEMALLOC_RECORD_BYTES);
}

static bool see_page(void *context, uint64_t page, uint64_t word) {
    struct reading *reading = context;
    const enum jemalloc_version version = reading->extents->version;
    const uint64_t at = jemalloc_word_record(version, word);
    struct jemalloc_record record;
    if (!at || at == reading->last_record) return true;
    reading->last_record = at;
    if (!memory_read(reading->memory, at, &record, sizeof record) ||
        !jemalloc_record_is_plausible(version, &record, word, page)) {
        reading->extents->torn_count++;
        reading->last_record = 0;  // the next page may be its first
        return true;
    }
    if (jemalloc_record_start(&record) != page) return true;  // its first page was seen
    reading->is_out_of_memory = !add_extent(reading, &record, at);
    return !reading->is_out_of_memory;
}

static bool see_part(void *context, uint64_t address, uint64_t bytes) {
    struct reading *reading = context;
    reading->last_record = 0;
    reading->is_out_of_memory = !spans_add(&reading->extents->tables, address, address + bytes);
    return !reading->is_out_of_memory;
}

// Chooses the quantum of which more slabs have just the pages that their class gets.
static enum jemalloc_quantum choose_quantum(const struct jemalloc_extents *extents) {
    size_t of_16 = 0, of_8 = 0;
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct jemalloc_extent *extent = &extents->items.items[i];
        if (extent->state != JEMALLOC_ACTIVE) continue;
        of_16 += jemalloc_slab_is_exact(JEMALLOC_QUANTUM_16, extent);
        of_8 += jemalloc_slab_is_exact(JEMALLOC_QUANTUM_8, extent);
    }
    return of_8 > of_16 ? JEMALLOC_QUANTUM_8 : JEMALLOC_QUANTUM_16;
}

static bool is_large(const struct jemalloc_extents *extents, const struct jemalloc_extent *extent) {
    return extent->state == JEMALLOC_ACTIVE && !extent->is_slab &&
           extent->size_class >= jemalloc_small_classes(extents->quantum);
}

// A large block begins anywhere within its first page, if jemalloc has a page more for that
// (cache_oblivious, the default).
static uint64_t choose_large_pad(const struct jemalloc_extents *extents) {
    size_t with = 0, without = 0;
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct jemalloc_extent *extent = &extents->items.items[i];
        if (!is_large(extents, extent)) continue;
        if (extent->address % JEMALLOC_PAGE_BYTES) return JEMALLOC_PAGE_BYTES;
        const uint64_t bytes = jemalloc_class_bytes(extents->quantum, extent->size_class);
        with += extent->bytes == bytes + JEMALLOC_PAGE_BYTES;
        without += extent->bytes == bytes;
    }
    return without > with ? 0 : JEMALLOC_PAGE_BYTES;
}

uint64_t jemalloc_block_bytes(const struct jemalloc_extents *extents,
                              const struct jemalloc_extent *extent) {
    if (is_large(extents, extent)) return extent->bytes - extents->large_pad;
    return jemalloc_class_bytes(extents->quantum, extent->size_class);
}

// The block of a large extent is of its class, not of the one below.
static bool has_its_class(const struct jemalloc_extents *extents,
                          const struct jemalloc_extent *extent) {
    if (!jemalloc_extent_fits(extents->quantum, extent)) return false;
    if (!is_large(extents, extent)) return true;
    const uint64_t bytes = jemalloc_block_bytes(extents, extent);
    return bytes <= jemalloc_class_bytes(extents->quantum, extent->size_class) &&
           bytes > jemalloc_class_bytes(extents->quantum, extent->size_class - 1u);
}

// The bitmap is longer than the regions of most slabs need; what is behind those is left over.
static bool counts_its_free(enum jemalloc_quantum quantum, const struct jemalloc_extent *slab) {
    enum { WORD_BITS = 64 };
    const uint64_t regions = slab->bytes / jemalloc_class_bytes(quantum, slab->size_class);
    unsigned count = 0;
    for (uint64_t i = 0; i < regions; i++) count += slab->free[i / WORD_BITS] >> i % WORD_BITS & 1;
    return count == slab->free_count;
}

// Leaves out what is of no class of this quantum and what lies across an extent before, and counts
// what contradicts itself.
static void check_classes(struct jemalloc_extents *extents) {
    size_t kept = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct jemalloc_extent *extent = &extents->items.items[i];
        const bool is_active = extent->state == JEMALLOC_ACTIVE;
        const bool is_left_out =
            extent->address < end || (is_active && !has_its_class(extents, extent));
        extents->torn_count += is_left_out || (is_active && extent->is_slab &&
                                               !counts_its_free(extents->quantum, extent));
        if (is_left_out) continue;
        end = extent->address / JEMALLOC_PAGE_BYTES * JEMALLOC_PAGE_BYTES + extent->bytes;
        extents->items.items[kept++] = *extent;
    }
    extents->items.count = kept;
}

// Reads all as if they were of that version.
static enum jemalloc_finding read_as(const struct memory_reader *memory,
                                     const struct jemalloc_table *table,
                                     enum jemalloc_version version,
                                     struct jemalloc_extents *extents) {
    *extents = (struct jemalloc_extents){.version = version};
    struct reading reading = {.memory = memory, .extents = extents};
    const struct jemalloc_table_seen seen = {version, see_part, see_page, &reading};
    if (jemalloc_table_walk(memory, table, &seen)) {
        spans_settle(&extents->tables);
        extents->quantum = choose_quantum(extents);
        extents->large_pad = choose_large_pad(extents);
        check_classes(extents);
        if (extents->torn_count <= extents->items.count / 8 + 1) return JEMALLOC_FOUND;
    }
    jemalloc_extents_free(extents);
    return reading.is_out_of_memory ? JEMALLOC_FAILED : JEMALLOC_NONE;
}

enum jemalloc_finding jemalloc_extents_read(const struct memory_reader *memory,
                                            const struct jemalloc_place *place,
                                            struct jemalloc_extents *extents) {
    const struct jemalloc_table table = jemalloc_table_find(memory, place);
    struct jemalloc_extents other;
    *extents = (struct jemalloc_extents){0};
    if (!table.levels) return JEMALLOC_NONE;
    const enum jemalloc_finding newer = read_as(memory, &table, JEMALLOC_5_3, extents);
    if (newer == JEMALLOC_FAILED || (newer == JEMALLOC_FOUND && !extents->torn_count)) return newer;
    const enum jemalloc_finding older = read_as(memory, &table, JEMALLOC_5_2, &other);
    if (older == JEMALLOC_FAILED) jemalloc_extents_free(extents);
    if (older != JEMALLOC_FOUND) return older == JEMALLOC_FAILED ? older : newer;
    const bool is_older = newer == JEMALLOC_NONE || other.torn_count < extents->torn_count;
    jemalloc_extents_free(is_older ? extents : &other);
    if (is_older) *extents = other;
    return older;
}

uint64_t jemalloc_find_root(const struct memory_reader *memory,
                            const struct jemalloc_place *place) {
    return jemalloc_table_find(memory, place).root;
}

void jemalloc_extents_free(struct jemalloc_extents *extents) {
    array_free(&extents->items);
    spans_free(&extents->tables);
}
