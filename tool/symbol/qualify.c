// SPDX-License-Identifier: Apache-2.0
// A DIE does not know its parent, and libdw's way to ask walks the unit each time. Here a unit is
// walked once, when its first such function comes up, and the parents of all functions without a
// linkage name are kept; names are only put together for those asked for. The walk meets DIEs in
// the order of their addresses, so the list is sorted.
#include "tool/symbol/qualify.h"

#include <dwarf.h>
#include <string.h>

#define DEPTH_MAX 128
#define BUCKET_COUNT 1024  // units by the address of their DIE
#define BLOCK_COUNT 256    // functions per allocation
#define PREFIX_LENGTH_MAX 4096

struct place {
    void *address;  // of the DIE
    const struct place *parent;
};

struct block {
    struct block *next;
    size_t count;
    struct place places[BLOCK_COUNT];
};

struct unit_places {
    struct unit_places *next;
    const void *unit;
    struct block *first;
    struct block *last;
};

struct qualifier {
    struct string_pool *scratch;
    struct unit_places *buckets[BUCKET_COUNT];
    struct unit_places *now;  // being filled
    bool is_failed;
};

struct qualifier *qualifier_open(struct string_pool *scratch) {
    struct qualifier *qualifier = string_pool_alloc(scratch, sizeof *qualifier);
    if (qualifier) qualifier->scratch = scratch;
    return qualifier;
}

// Returns NULL without memory.
static const struct place *add_place(struct qualifier *qualifier, const Dwarf_Die *die,
                                     const struct place *parent) {
    struct unit_places *now = qualifier->now;
    if (!now->last || now->last->count == BLOCK_COUNT) {
        struct block *block = string_pool_alloc(qualifier->scratch, sizeof *block);
        if (!block) {
            qualifier->is_failed = true;
            return NULL;
        }
        *(now->last ? &now->last->next : &now->first) = block;
        now->last = block;
    }
    struct place *place = &now->last->places[now->last->count++];
    *place = (struct place){die->addr, parent};
    return place;
}

static void walk_children(struct qualifier *qualifier, Dwarf_Die *parent_die,
                          const struct place *parent, int depth);

static void visit(struct qualifier *qualifier, Dwarf_Die *die, const struct place *parent,
                  int depth) {
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        if (!dwarf_haschildren(die) && dwarf_hasattr(die, DW_AT_linkage_name)) return;
        break;
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_lexical_block:
        if (!dwarf_haschildren(die)) return;
        break;
    default:
        return;
    }
    const struct place *place = add_place(qualifier, die, parent);
    if (place && dwarf_haschildren(die)) walk_children(qualifier, die, place, depth);
}

static void walk_children(struct qualifier *qualifier, Dwarf_Die *parent_die,
                          const struct place *parent, int depth) {
    Dwarf_Die die;
    if (depth == DEPTH_MAX || dwarf_child(parent_die, &die)) return;
    do {
        visit(qualifier, &die, parent, depth + 1);
    } while (!qualifier->is_failed && !dwarf_siblingof(&die, &die));
}

static struct unit_places *unit_places(struct qualifier *qualifier, Dwarf_Die *unit) {
    struct unit_places **bucket = &qualifier->buckets[((uintptr_t)unit->addr >> 4) % BUCKET_COUNT];
    for (struct unit_places *found = *bucket; found; found = found->next)
        if (found->unit == unit->addr) return found;
    struct unit_places *places = string_pool_alloc(qualifier->scratch, sizeof *places);
    if (!places) return NULL;
    places->unit = unit->addr;
    places->next = *bucket;
    *bucket = places;
    qualifier->now = places;
    walk_children(qualifier, unit, NULL, 0);
    return qualifier->is_failed ? NULL : places;
}

static const struct place *find_place(const struct unit_places *places, const void *address) {
    const struct block *block = places->first;
    while (block && block->places[block->count - 1].address < address) block = block->next;
    if (!block) return NULL;
    size_t low = 0, high = block->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (block->places[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct place *place = &block->places[low];
    return low < block->count && place->address == address ? place : NULL;
}

// Puts "OUTER::INNER" together from the end of `text`; returns where it starts. What does not fit
// is left out, and so is what has no name.
static size_t write_prefix(const struct place *place, Dwarf_CU *unit, char *text, size_t start) {
    for (; place; place = place->parent) {
        Dwarf_Die die = {.addr = place->address, .cu = unit};
        const char *name = dwarf_diename(&die);
        if (!name && dwarf_tag(&die) == DW_TAG_namespace) name = "(anonymous namespace)";
        if (name && !strncmp(name, "<lambda", strlen("<lambda"))) name = "{lambda}";
        if (!name) continue;
        size_t length = strlen(name), separator = text[start] ? strlen("::") : 0;
        if (length + separator > start) break;
        start -= separator;
        memcpy(text + start, "::", separator);
        start -= length;
        memcpy(text + start, name, length);
    }
    return start;
}

// The function's place; NULL if it has none. False only without memory.
static bool place_of(struct qualifier *qualifier, Dwarf_Die *function, Dwarf_Die *unit,
                     const struct place **place) {
    *place = NULL;
    if (!dwarf_diecu(function, unit, NULL, NULL)) return true;
    struct unit_places *places = unit_places(qualifier, unit);
    if (places) *place = find_place(places, function->addr);
    return places;
}

const char *qualifier_find(struct qualifier *qualifier, Dwarf_Die *function) {
    Dwarf_Die unit;
    const struct place *place;
    if (!place_of(qualifier, function, &unit, &place)) return NULL;
    if (!place || !place->parent) return "";
    char text[PREFIX_LENGTH_MAX];
    size_t end = sizeof text - 1;
    text[end] = '\0';
    size_t start = write_prefix(place->parent, unit.cu, text, end);
    return string_pool_intern(qualifier->scratch, text + start, end - start);
}

bool qualifier_class_line(struct qualifier *qualifier, Dwarf_Die *function, uint32_t *line) {
    Dwarf_Die unit;
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    const struct place *place;
    *line = 0;
    if (!place_of(qualifier, function, &unit, &place)) return false;
    if (!place || !place->parent) return true;
    Dwarf_Die die = {.addr = place->parent->address, .cu = unit.cu};
    bool has_line = !dwarf_formudata(dwarf_attr(&die, DW_AT_decl_line, &attribute), &value);
    if (has_line && value <= UINT32_MAX) *line = (uint32_t)value;
    return true;
}
