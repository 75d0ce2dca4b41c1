// SPDX-License-Identifier: Apache-2.0
#include "tool/types/index.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"

enum { DEPTH_MAX = 64, NAME_BYTES = 4096 };
static const uint64_t hash_factor = 0x100000001b3u;  // of FNV-1a

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * hash_factor;
    return hash;
}

static uint64_t hash_in(const struct type_index *index, uint32_t scope, const char *name) {
    uint64_t hash = index->names.items[scope].hash;
    if (scope) hash = hash_text(hash, "::");
    return hash_text(hash, name);
}

static uint32_t add_scope(struct type_index *index, uint32_t parent, const char *name) {
    uint64_t hash = hash_in(index, parent, name);
    struct scope_name *scope = array_push(&index->names);
    if (scope) *scope = (struct scope_name){name, parent, hash};
    index->is_failed |= !scope;
    return scope ? (uint32_t)(index->names.count - 1) : parent;
}

static void walk(struct type_index *index, Dwarf_Die *parent, uint32_t scope, int depth);

static void visit_type(struct type_index *index, Dwarf_Die *die, uint32_t scope, int depth) {
    const char *name = dwarf_diename(die);
    bool has_inside = dwarf_haschildren(die) && dwarf_tag(die) != DW_TAG_enumeration_type;
    if (name) {
        struct named_die *entry = array_push(&index->dies);
        index->is_failed |= !entry;
        if (entry) *entry = (struct named_die){*die, scope, !dwarf_hasattr(die, DW_AT_declaration)};
    }
    if (has_inside) walk(index, die, name ? add_scope(index, scope, name) : scope, depth);
}

// Whether a variable's place is that of an address, or in the thread's own area.
static bool is_lasting(Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    Dwarf_Block block;
    if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_formblock(&attribute, &block) ||
        !block.length)
        return false;
    switch (block.data[0]) {
    case DW_OP_addr:
    case DW_OP_addrx:
    case DW_OP_GNU_addr_index:
    case DW_OP_constx:
    case DW_OP_GNU_const_index:
    case DW_OP_const4u:
    case DW_OP_const8u:
        return true;
    default:
        return false;
    }
}

static void visit_variable(struct type_index *index, Dwarf_Die *die, uint32_t scope) {
    if (!is_lasting(die)) return;
    struct variable_die *variable = array_push(&index->variables);
    index->is_failed |= !variable;
    if (variable) *variable = (struct variable_die){*die, scope};
}

static void visit_call(struct type_index *index, Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    Dwarf_Addr address;
    if (!dwarf_hasattr(die, DW_AT_OF_ALLOCATION) ||
        dwarf_formaddr(dwarf_attr(die, DW_AT_call_return_pc, &attribute), &address))
        return;
    struct call_die *call = array_push(&index->calls);
    index->is_failed |= !call;
    if (call) *call = (struct call_die){address, *die};
}

static void visit(struct type_index *index, Dwarf_Die *die, uint32_t scope, int depth) {
    const char *name;
    switch (dwarf_tag(die)) {
    case DW_TAG_namespace:
        name = dwarf_diename(die);
        walk(index, die, add_scope(index, scope, name ? name : "(anonymous namespace)"), depth);
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        visit_type(index, die, scope, depth);
        break;
    case DW_TAG_variable:
        visit_variable(index, die, scope);
        break;
    case DW_TAG_subprogram:
        if (!dwarf_haschildren(die)) break;
        name = dwarf_diename(die);
        walk(index, die, name ? add_scope(index, scope, name) : scope, depth);
        break;
    case DW_TAG_call_site:
        visit_call(index, die);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_module:
        walk(index, die, scope, depth);
        break;
    default:
        break;
    }
}

static void walk(struct type_index *index, Dwarf_Die *parent, uint32_t scope, int depth) {
    Dwarf_Die die;
    if (depth == DEPTH_MAX || dwarf_child(parent, &die)) return;
    do {
        visit(index, &die, scope, depth + 1);
    } while (!index->is_failed && !dwarf_siblingof(&die, &die));
}

void type_index_add(struct type_index *index, Dwarf *dwarf) {
    Dwarf_CU *unit = NULL;
    Dwarf_Die die, split;
    uint8_t type;
    if (!index->names.count) {
        struct scope_name *outermost = array_push(&index->names);
        index->is_failed = !outermost;
        if (outermost) *outermost = (struct scope_name){"", 0, index_table_seed()};
    }
    while (!index->is_failed && !dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &split)) {
        bool is_split = type == DW_UT_skeleton && split.addr;
        walk(index, is_split ? &split : &die, 0, 0);
    }
}

static int by_address(const void *a, const void *b) {
    const struct named_die *left = a, *right = b;
    return (left->die.addr > right->die.addr) - (left->die.addr < right->die.addr);
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) ? 0 : value;
}

bool type_index_are_alike(Dwarf_Die *one, Dwarf_Die *other) {
    return dwarf_tag(one) == dwarf_tag(other) &&
           number_of(one, DW_AT_byte_size) == number_of(other, DW_AT_byte_size) &&
           number_of(one, DW_AT_decl_line) == number_of(other, DW_AT_decl_line);
}

// A definition that many units have is kept once.
static bool add_definition(struct type_index *index, uint32_t number, const char *name) {
    struct named_die *entry = &index->dies.items[number];
    uint64_t hash = hash_in(index, entry->scope, name);
    struct index_probe probe = index_probe_start(&index->definitions, hash);
    for (uint32_t i; index_probe_next(&index->definitions, &probe, &i);)
        if (type_index_are_alike(&index->dies.items[i].die, &entry->die)) return true;
    return index_table_insert(&index->definitions, hash, number);
}

static int by_return_address(const void *a, const void *b) {
    const struct call_die *left = a, *right = b;
    return (left->return_address > right->return_address) -
           (left->return_address < right->return_address);
}

const struct call_die *type_index_call(const struct type_index *index, uint64_t return_address) {
    const struct call_die wanted = {.return_address = return_address};
    return index->calls.items ? bsearch(&wanted, index->calls.items, index->calls.count,
                                        sizeof wanted, by_return_address)
                              : NULL;
}

bool type_index_settle(struct type_index *index) {
    bool is_ok = !index->is_failed && index->dies.count < UINT32_MAX;
    if (index->calls.items)
        qsort(index->calls.items, index->calls.count, sizeof *index->calls.items,
              by_return_address);
    if (index->dies.count)
        qsort(index->dies.items, index->dies.count, sizeof *index->dies.items, by_address);
    for (size_t i = 0; i < index->dies.count && is_ok; i++) {
        struct named_die *entry = &index->dies.items[i];
        const char *name = entry->is_definition ? dwarf_diename(&entry->die) : NULL;
        if (name) is_ok = add_definition(index, (uint32_t)i, name);
    }
    return is_ok;
}

// --- units by address

static int by_start(const void *a, const void *b) {
    const struct unit_range *one = a, *other = b;
    return (one->start > other->start) - (one->start < other->start);
}

static void read_ranges(struct type_index *index, Dwarf *dwarf) {
    Dwarf_CU *unit = NULL;
    Dwarf_Die die, split;
    uint8_t kind;
    index->has_ranges = true;
    while (!dwarf_get_units(dwarf, unit, &unit, NULL, &kind, &die, &split)) {
        bool is_split = kind == DW_UT_skeleton && split.addr;
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;
        while ((at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
            struct unit_range *range = start < end ? array_push(&index->ranges) : NULL;
            if (range) *range = (struct unit_range){start, end, is_split ? split : die};
        }
    }
    if (index->ranges.items)
        qsort(index->ranges.items, index->ranges.count, sizeof *index->ranges.items, by_start);
}

bool type_index_unit_at(struct type_index *index, Dwarf *dwarf, uint64_t pc, Dwarf_Die *unit) {
    if (dwarf_addrdie(dwarf, pc, unit) && dwarf_haspc(unit, pc) == 1) return true;
    if (!index->has_ranges) read_ranges(index, dwarf);
    if (!index->ranges.items) return false;
    size_t low = 0, high = index->ranges.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->ranges.items[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    const struct unit_range *range = low ? &index->ranges.items[low - 1] : NULL;
    if (!range || pc >= range->end) return false;
    *unit = range->unit;
    return true;
}

void type_index_free(struct type_index *index) {
    array_free(&index->ranges);
    array_free(&index->calls);
    array_free(&index->names);
    array_free(&index->dies);
    array_free(&index->variables);
    index_table_free(&index->definitions);
}

bool type_index_qualify(const struct type_index *index, uint32_t scope, const char *name,
                        char *text, size_t size) {
    char reversed[NAME_BYTES];
    size_t start = sizeof reversed - 1, length = strlen(name);
    reversed[start] = 0;
    if (length >= start) return false;
    start -= length;
    memcpy(reversed + start, name, length);
    for (; scope; scope = index->names.items[scope].parent) {
        const char *outer = index->names.items[scope].name;
        length = strlen(outer);
        if (length + 2 > start) return false;
        start -= length + 2;
        memcpy(reversed + start, outer, length);
        memcpy(reversed + start + length, "::", 2);
    }
    length = sizeof reversed - start;
    if (length > size) return false;
    memcpy(text, reversed + start, length);
    return true;
}

const struct named_die *type_index_entry(const struct type_index *index, const Dwarf_Die *die) {
    size_t at;
    search_first(at, index->dies.count, index->dies.items[at].die.addr >= die->addr);
    bool is_there = at < index->dies.count && index->dies.items[at].die.addr == die->addr;
    return is_there ? &index->dies.items[at] : NULL;
}

const struct named_die *type_index_find(const struct type_index *index, const char *name,
                                        Dwarf_Die *alike) {
    char text[NAME_BYTES];
    struct index_probe probe =
        index_probe_start(&index->definitions, hash_text(index_table_seed(), name));
    for (uint32_t i; index_probe_next(&index->definitions, &probe, &i);) {
        struct named_die *entry = &index->dies.items[i];
        bool is_it = type_index_qualify(index, entry->scope, dwarf_diename(&entry->die), text,
                                        sizeof text) &&
                     !strcmp(text, name);
        if (is_it && (!alike || type_index_are_alike(&entry->die, alike))) return entry;
    }
    return NULL;
}
