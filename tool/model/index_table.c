// SPDX-License-Identifier: Apache-2.0
#include "tool/model/index_table.h"

#include <stdlib.h>
#include <sys/random.h>

enum { FIRST_SLOTS = 1024 };

struct index_probe index_probe_start(const struct index_table *table, uint64_t hash) {
    return (struct index_probe){.at = (uint32_t)hash & table->mask, .hash = (uint32_t)hash};
}

bool index_probe_next(const struct index_table *table, struct index_probe *probe, uint32_t *index) {
    while (table->slots && table->slots[probe->at].index_plus_1) {
        struct index_slot slot = table->slots[probe->at];
        probe->at = (probe->at + 1) & table->mask;
        if (slot.hash != probe->hash) continue;
        *index = slot.index_plus_1 - 1;
        return true;
    }
    return false;
}

static void put(struct index_slot *slots, size_t mask, struct index_slot slot) {
    size_t at = slot.hash & mask;
    while (slots[at].index_plus_1) at = (at + 1) & mask;
    slots[at] = slot;
}

static bool grow(struct index_table *table, size_t slot_count) {
    struct index_slot *slots = calloc(slot_count, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; table->slots && i <= table->mask; i++)
        if (table->slots[i].index_plus_1) put(slots, slot_count - 1, table->slots[i]);
    free(table->slots);
    table->slots = slots;
    table->mask = slot_count - 1;
    return true;
}

bool index_table_reserve(struct index_table *table, size_t more) {
    size_t slot_count = table->slots ? table->mask + 1 : FIRST_SLOTS;
    while ((table->count + more) * 3 >= slot_count * 2) slot_count *= 2;
    return (table->slots && slot_count == table->mask + 1) || grow(table, slot_count);
}

bool index_table_insert(struct index_table *table, uint64_t hash, uint32_t index) {
    if (!index_table_reserve(table, 0)) return false;
    struct index_slot slot = {.hash = (uint32_t)hash, .index_plus_1 = index + 1};
    put(table->slots, table->mask, slot);
    table->count++;
    return true;
}

void index_table_free(struct index_table *table) {
    free(table->slots);
    *table = (struct index_table){0};
}

uint64_t index_table_seed(void) {
    static uint64_t seed;
    const uint64_t fallback = 0x632be59bd9b4e019u;
    uint64_t known = __atomic_load_n(&seed, __ATOMIC_RELAXED), made = 0;
    if (known) return known;
    if (getrandom(&made, sizeof made, GRND_NONBLOCK) != sizeof made || !made) made = fallback;
    // of two threads that ask first, one makes it
    bool is_first =
        __atomic_compare_exchange_n(&seed, &known, made, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return is_first ? made : known;
}
