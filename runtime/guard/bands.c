// SPDX-License-Identifier: Apache-2.0
#include "runtime/guard/bands.h"

#include <string.h>

#include "runtime/sys/beside.h"
#include "runtime/sys/sys.h"

// Blocks with bands are at least 48 bytes apart.
enum { GRANULE_SHIFT = 5, GRANULE_HALF = 16, ALIGNMENT_SHIFT = 8, ALIGNMENT_MASK = 0x3f };

static struct beside table = {.granule_shift = GRANULE_SHIFT,
                              .entry_bytes = sizeof(struct bands_entry)};
static size_t band_bytes;
static uint8_t pattern[CAIRN_GUARD_MOST];

// No byte is 0, 0xff, ASCII or equal to the next one, and no eight of them are an address.
void bands_open(uint32_t bytes) {
    const unsigned first = 0x83, step = 37, range = 0x7a;
    band_bytes = bytes;
    for (unsigned i = 0; i < sizeof pattern; i++) pattern[i] = (uint8_t)(first + i * step % range);
}

static size_t front_for(size_t alignment) {
    return (band_bytes + alignment - 1) & ~(alignment - 1);
}

bool bands_plan(size_t size, size_t alignment, size_t *whole_bytes, size_t *front_bytes) {
    *front_bytes = front_for(alignment);
    return size < BANDS_SIZE_LIMIT && *front_bytes >= band_bytes && alignment < BANDS_SIZE_LIMIT &&
           !__builtin_add_overflow(size, *front_bytes + band_bytes, whole_bytes);
}

static uint64_t half_of(uintptr_t address) {
    return address & GRANULE_HALF ? BANDS_HALF : 0;
}

bool bands_put(uintptr_t address, size_t size, size_t alignment) {
    struct bands_entry *entry = beside_at(&table, address, true);
    uint64_t shift = (uint64_t)__builtin_ctzl(alignment);
    if (!entry) return false;
    memcpy((void *)(address - band_bytes), pattern, band_bytes);
    memcpy((void *)(address + size), pattern, band_bytes);
    entry->cell = 0;
    __atomic_store_n(&entry->word,
                     (uint64_t)size << BANDS_SIZE_SHIFT | shift << ALIGNMENT_SHIFT |
                         half_of(address) | BANDS_OWNED,
                     __ATOMIC_RELEASE);
    return true;
}

struct bands_entry *bands_find(uintptr_t address) {
    struct bands_entry *entry = beside_at(&table, address, false);
    uint64_t word = entry ? __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE) : 0;
    bool is_at = word && (word & BANDS_HALF) == half_of(address) && !(address % GRANULE_HALF);
    return is_at ? entry : NULL;
}

struct bands_block bands_block(uintptr_t address, uint64_t word) {
    size_t alignment = (size_t)1 << (word >> ALIGNMENT_SHIFT & ALIGNMENT_MASK);
    return (struct bands_block){address, word >> BANDS_SIZE_SHIFT, front_for(alignment)};
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

// One side: `band` is `band_bytes` long; the byte next to the block is its last, or its first one.
static void compare_side(const uint8_t *band, bool is_before, struct cairn_damage_side *side) {
    for (size_t i = 0; i < band_bytes; i++) {
        size_t at = is_before ? band_bytes - 1 - i : i;
        if (band[at] == pattern[at]) continue;
        uint32_t distance = (uint32_t)i + 1;
        if (!side->changed_bytes++) side->nearest = distance;
        side->farthest = distance;
    }
    size_t first = is_before ? band_bytes - side->farthest : side->nearest - 1;
    size_t length = side->farthest - side->nearest + 1;
    if (!side->changed_bytes) return;
    if (length > sizeof side->sample) length = sizeof side->sample;
    memcpy(side->sample, band + first, length);
}

bool bands_compare(const struct bands_block *block, struct cairn_damage *damage) {
    const uint8_t *before = (const uint8_t *)block->address - band_bytes;
    const uint8_t *behind = (const uint8_t *)block->address + block->size;
    if (!memcmp(before, pattern, band_bytes) && !memcmp(behind, pattern, band_bytes)) return false;
    damage->address = block->address;
    damage->size = block->size;
    compare_side(before, true, &damage->before);
    compare_side(behind, false, &damage->behind);
    return damage->before.changed_bytes || damage->behind.changed_bytes;
}

static void visit_one(const struct bands_visitor *visitor, struct bands_entry *entry,
                      uintptr_t granule) {
    uint64_t word = __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE);
    if ((word & BANDS_STATE) != BANDS_OWNED) return;
    uint64_t held = (word & ~(uint64_t)BANDS_STATE) | BANDS_CHECKED;
    if (!__atomic_compare_exchange_n(&entry->word, &word, held, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    struct bands_block block = bands_block(granule + (word & BANDS_HALF ? GRANULE_HALF : 0), word);
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
        if (leaf[i].word) visit_one(context, &leaf[i], start + (i << GRANULE_SHIFT));
}

void bands_each(const struct bands_visitor *visitor) {
    beside_each(&table, visit_leaf, (void *)visitor);
}
