// SPDX-License-Identifier: Apache-2.0
#include "tool/model/places.h"

#include <string.h>

void places_start(struct places *places, const struct module_map *modules) {
    memset(places, 0, sizeof *places);
    places->modules = modules;
}

void places_free(struct places *places) {
    array_free(&places->list);
    index_table_free(&places->table);
    codes_free(&places->codes);
}

static bool places_intern(struct places *places, struct place wanted, uint32_t *place) {
    uint64_t hash =
        hash_mix(wanted.address ^ index_table_seed(), (uint64_t)wanted.module << 32 | wanted.cut);
    struct index_probe probe = index_probe_start(&places->table, hash);
    for (uint32_t index; index_probe_next(&places->table, &probe, &index);) {
        const struct place *known = &places->list.items[index];
        if (known->address != wanted.address || known->module != wanted.module ||
            known->cut != wanted.cut)
            continue;
        *place = index;
        return true;
    }
    *place = (uint32_t)places->list.count;
    struct place *added = array_push(&places->list);
    if (!added) return false;
    *added = wanted;
    return index_table_insert(&places->table, hash, *place);
}

bool places_of_module(struct places *places, uint32_t module, uint64_t return_address,
                      uint32_t *place) {
    struct place wanted = {.module = MODULE_NONE, .address = return_address - 1};
    if (module != MODULE_NONE && places->modules->modules[module].is_valid) {
        wanted.address -= places->modules->modules[module].bias;
        wanted.module = places->modules->modules[module].same_as;
    }
    return places_intern(places, wanted, place);
}

bool places_of_address(struct places *places, uint64_t return_address, uint32_t *place) {
    size_t slot = (return_address ^ return_address >> 12) % PLACE_CACHE_SLOTS;
    struct place_cache_slot *cached = &places->cache[slot];
    if (cached->place_plus_1 && cached->pc == return_address) {
        *place = cached->place_plus_1 - 1;
        return true;
    }
    uint32_t module = module_map_find(places->modules, return_address - 1);
    if (!places_of_module(places, module, return_address, place)) return false;
    *cached = (struct place_cache_slot){.pc = return_address, .place_plus_1 = *place + 1};
    return true;
}

enum { CODE_SHIFT = 32 };

bool places_of_code(struct places *places, uint32_t code, uint32_t line, uint32_t *place) {
    uint64_t address = PLACE_PYTHON | (uint64_t)code << CODE_SHIFT | line;
    return places_intern(places, (struct place){.module = MODULE_NONE, .address = address}, place);
}

const struct code *place_code(const struct places *places, uint32_t place, uint32_t *line) {
    const struct place *entry = &places->list.items[place];
    uint64_t index = (entry->address & ~PLACE_PYTHON) >> CODE_SHIFT;
    bool is_code = entry->module == MODULE_NONE && !entry->cut && entry->address & PLACE_PYTHON;
    if (!is_code || index >= places->codes.list.count) return NULL;
    *line = (uint32_t)entry->address;
    return &places->codes.list.items[index];
}

bool places_of_cut(struct places *places, uint32_t cut, uint32_t *place) {
    struct place wanted = {.module = MODULE_NONE, .cut = cut};
    return places_intern(places, wanted, place);
}

uint64_t place_identity(const struct places *places, uint32_t place) {
    const struct place *entry = &places->list.items[place];
    uint32_t line;
    const struct code *code = place_code(places, place, &line);
    if (code) return hash_mix(line, code->identity);
    uint64_t module = entry->module == MODULE_NONE
                          ? entry->cut
                          : places->modules->modules[entry->module].identity;
    return hash_mix(entry->address, module);
}
