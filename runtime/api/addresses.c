// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/addresses.h"

#include <string.h>

#include "runtime/stack/hash.h"
#include "runtime/sys/sys.h"

enum { FIRST_SLOTS = 256, USED_PARTS = 3, ALL_PARTS = 4 };

static uint64_t *entry_at(const struct addresses *table, uint64_t slot) {
    return (uint64_t *)(void *)(table->entries + slot * table->entry_bytes);
}

static uint64_t home_of(const struct addresses *table, uint64_t key) {
    return hash_mix(key, HASH_FACTOR) & (table->slots - 1);
}

// Where the key is, or the empty place where it belongs.
static uint64_t *place_of(const struct addresses *table, uint64_t key) {
    uint64_t at = home_of(table, key);
    while (*entry_at(table, at) && *entry_at(table, at) != key) at = (at + 1) & (table->slots - 1);
    return entry_at(table, at);
}

bool addresses_open(struct addresses *table, size_t entry_bytes) {
    *table = (struct addresses){.entry_bytes = entry_bytes, .slots = FIRST_SLOTS};
    table->entries = sys_map(FIRST_SLOTS * entry_bytes);
    return table->entries != NULL;
}

void addresses_close(struct addresses *table) {
    if (table->entries) sys_unmap(table->entries, table->slots * table->entry_bytes);
}

void *addresses_find(const struct addresses *table, uint64_t key) {
    uint64_t *entry = key && table->entries ? place_of(table, key) : NULL;
    return entry && *entry ? entry : NULL;
}

static bool is_full(uint64_t used, uint64_t slots) {
    return used * ALL_PARTS > slots * USED_PARTS;
}

// Enters all in a table of so many slots; of a key that is there twice, the first.
static bool move_to(struct addresses *table, uint64_t slots) {
    struct addresses old = *table;
    uint8_t *entries = sys_map(slots * old.entry_bytes);
    if (!entries) return false;
    *table = (struct addresses){entries, old.entry_bytes, slots, 0};
    for (uint64_t i = 0; i < old.slots; i++) {
        const uint64_t *entry = entry_at(&old, i);
        uint64_t *place = *entry ? place_of(table, *entry) : NULL;
        if (!place || *place) continue;
        memcpy(place, entry, old.entry_bytes);
        table->used++;
    }
    addresses_close(&old);
    return true;
}

void addresses_renew(struct addresses *table) {
    if (!table->entries) return;
    uint64_t used = 0, slots = table->slots;
    for (uint64_t i = 0; i < table->slots; i++) used += *entry_at(table, i) != 0;
    while (is_full(used, slots)) slots *= 2;
    if (move_to(table, slots)) return;
    addresses_close(table);
    *table = (struct addresses){0};
}

void *addresses_add(struct addresses *table, uint64_t key) {
    uint64_t *entry = key && table->entries ? place_of(table, key) : NULL;
    if (!entry || *entry) return entry;
    if (is_full(table->used + 1, table->slots)) {
        if (!move_to(table, 2 * table->slots)) return NULL;
        entry = place_of(table, key);
    }
    memset(entry, 0, table->entry_bytes);
    *entry = key;
    table->used++;
    return entry;
}

void *addresses_next(const struct addresses *table, const void *entry) {
    uint64_t at = 0;
    if (entry) at = (uint64_t)((const uint8_t *)entry - table->entries) / table->entry_bytes + 1;
    for (; table->entries && at < table->slots; at++)
        if (*entry_at(table, at)) return entry_at(table, at);
    return NULL;
}

// Entries behind the gap that may lie there move up.
void addresses_drop(struct addresses *table, void *entry) {
    const uint64_t mask = table->slots - 1;
    uint64_t gap = (uint64_t)((uint8_t *)entry - table->entries) / table->entry_bytes;
    for (uint64_t at = (gap + 1) & mask; *entry_at(table, at); at = (at + 1) & mask) {
        uint64_t home = home_of(table, *entry_at(table, at));
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        memcpy(entry_at(table, gap), entry_at(table, at), table->entry_bytes);
        gap = at;
    }
    *entry_at(table, gap) = 0;
    table->used--;
}
