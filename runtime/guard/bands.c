// SPDX-License-Identifier: Apache-2.0
#include "runtime/guard/bands.h"

#include <string.h>

#include "runtime/sys/shadow_table.h"
#include "runtime/sys/sys.h"

static APART struct shadow_table table;
static size_t band_bytes;
static APART uint8_t pattern[CAIRN_GUARD_MOST];

void bands_open(uint32_t bytes) {
    table.granule_shift = BANDS_GRANULE_SHIFT;
    table.entry_bytes = sizeof(struct bands_entry);
    band_bytes = bytes;
    bands_paint(pattern);
}

const void *bands_tops(void) {
    return table.tops;
}

bool bands_plan(size_t size, size_t alignment, size_t *whole_bytes, size_t *front_bytes) {
    *front_bytes = bands_front(band_bytes, alignment);
    return size < BANDS_SIZE_LIMIT && *front_bytes >= band_bytes && alignment < BANDS_SIZE_LIMIT &&
           !__builtin_add_overflow(size, *front_bytes + band_bytes, whole_bytes);
}

static uint64_t half_of(uintptr_t address) {
    return address & BANDS_GRANULE_HALF ? BANDS_HALF : 0;
}

bool bands_put(uintptr_t address, size_t size, size_t alignment) {
    struct bands_entry *entry = shadow_table_at(&table, address, true);
    uint64_t shift = (uint64_t)__builtin_ctzl(alignment);
    if (!entry) return false;
    memcpy((void *)(address - band_bytes), pattern, band_bytes);
    memcpy((void *)(address + size), pattern, band_bytes);
    entry->cell = 0;
    __atomic_store_n(&entry->word,
                     (uint64_t)size << BANDS_SIZE_SHIFT | shift << BANDS_ALIGNMENT_SHIFT |
                         half_of(address) | BANDS_OWNED,
                     __ATOMIC_RELEASE);
    return true;
}

struct bands_entry *bands_find(uintptr_t address) {
    struct bands_entry *entry = shadow_table_at(&table, address, false);
    uint64_t word = entry ? __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE) : 0;
    bool is_at = word && (word & BANDS_HALF) == half_of(address) && !(address % BANDS_GRANULE_HALF);
    return is_at ? entry : NULL;
}

struct bands_block bands_block(uintptr_t address, uint64_t word) {
    return bands_block_at(address, word, band_bytes);
}

uint64_t bands_take(struct bands_entry *entry) {
    uint64_t word = __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE);
    for (;;) {
        bool is_owned = (word & BANDS_STATE) == BANDS_OWNED;
        uint64_t next = is_owned ? BANDS_NONE : word | BANDS_LEFT;
        if (__atomic_compare_exchange_n(&entry->word, &word, next, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return is_owned ? word : 0;
    }
}

bool bands_compare(const struct bands_block *block, struct cairn_overrun *overrun) {
    const uint8_t *before = (const uint8_t *)block->address - band_bytes;
    const uint8_t *behind = (const uint8_t *)block->address + block->size;
    return bands_differ(block, before, behind, pattern, band_bytes, overrun);
}

static void visit_one(const struct bands_visitor *visitor, struct bands_entry *entry,
                      uintptr_t granule) {
    uint64_t word = __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE);
    if ((word & BANDS_STATE) != BANDS_OWNED) return;
    uint64_t held = (word & ~(uint64_t)BANDS_STATE) | BANDS_CHECKED;
    if (!__atomic_compare_exchange_n(&entry->word, &word, held, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    struct bands_block block = bands_block(bands_address(granule, word), word);
    if (visitor->look(&block, entry, word & BANDS_TOLD, visitor->context)) word |= BANDS_TOLD;
    if (__atomic_compare_exchange_n(&entry->word, &held, word, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(&entry->word, BANDS_NONE, __ATOMIC_RELEASE);
    visitor->release((void *)(block.address - block.front_bytes));
}

static void visit_leaf(void *context, void *entries, size_t count, uintptr_t start) {
    struct bands_entry *leaf = entries;
    for (size_t i = 0; i < count; i++)
        if (leaf[i].word) visit_one(context, &leaf[i], start + (i << BANDS_GRANULE_SHIFT));
}

void bands_each(const struct bands_visitor *visitor) {
    shadow_table_each(&table, visit_leaf, (void *)visitor);
}
