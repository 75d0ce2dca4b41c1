// SPDX-License-Identifier: Apache-2.0
// The variables of a module, with their types and places.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "tool/types/types_internal.h"

enum {
    FUNCTIONS_MAX = 32,  // inlined into each other, with their blocks
    SCOPES_MAX = 64,     // in each other
};

// --- those that last

// A place in the module, or in the thread's own area.
static bool place_of(Dwarf_Die *die, struct type_variable *variable) {
    Dwarf_Attribute attribute, address;
    Dwarf_Op *operations;
    size_t count;
    Dwarf_Addr place;
    if (!dwarf_attr(die, DW_AT_location, &attribute) ||
        dwarf_getlocation(&attribute, &operations, &count) || !count)
        return false;
    bool is_indexed = !dwarf_getlocation_attr(&attribute, operations, &address) &&
                      !dwarf_formaddr(&address, &place);
    variable->place = is_indexed ? place : operations[0].number;
    if (count == 1) return operations[0].atom == DW_OP_addr || is_indexed;
    variable->is_thread_local = count == 2 && (operations[1].atom == DW_OP_form_tls_address ||
                                               operations[1].atom == DW_OP_GNU_push_tls_address);
    return variable->is_thread_local;
}

void types_each_variable(struct types *types,
                         bool (*see)(void *context, const struct type_variable *variable),
                         void *context) {
    char text[TYPE_NAME_BYTES];
    for (size_t i = 0; i < types->names.variables.count; i++) {
        struct variable_die *item = &types->names.variables.items[i];
        struct type_variable variable = {0};
        const char *name = dwarf_diename(&item->die);
        if (!name || !place_of(&item->die, &variable)) continue;
        if (type_index_qualify(&types->names, item->scope, name, text, sizeof text)) name = text;
        variable.name = string_pool_intern(types->store, name, strlen(name));
        variable.type = types_of(types, &item->die);
        if (variable.name && variable.type->kind != TYPE_NONE && !see(context, &variable)) return;
    }
}

// --- those of functions

static bool read_expression(Dwarf_Die *die, unsigned name, Dwarf_Addr pc, const void **expression,
                            size_t *count) {
    Dwarf_Attribute attribute;
    Dwarf_Op *operations = NULL;
    *count = 0;
    bool is_there = dwarf_attr_integrate(die, name, &attribute) &&
                    dwarf_getlocation_addr(&attribute, pc, &operations, count, 1) == 1;
    *expression = operations;
    return is_there && *count;
}

static bool see_locals(struct types *types, Dwarf_Die *scope, struct type_local local, uint64_t pc,
                       bool (*see)(void *context, const struct type_local *local), void *context) {
    Dwarf_Die die;
    if (dwarf_child(scope, &die)) return true;
    do {
        int tag = dwarf_tag(&die);
        if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) continue;
        local.name = dwarf_diename(&die);
        if (!local.name || dwarf_hasattr_integrate(&die, DW_AT_const_value)) continue;
        if (!read_expression(&die, DW_AT_location, pc, &local.expression, &local.operations))
            local.operations = 0;
        local.type = types_of(types, &die);
        if (local.type->kind != TYPE_NONE && !see(context, &local)) return false;
    } while (!dwarf_siblingof(&die, &die));
    return true;
}

// The innermost function or block that an address lies in. dwarf_getscopes does not look into
// namespaces, which functions of Rust are in.
static bool find_scope(Dwarf_Die *parent, uint64_t pc, int depth, Dwarf_Die *found) {
    Dwarf_Die die, inside;
    if (depth == SCOPES_MAX || dwarf_child(parent, &die)) return false;
    do {
        int tag = dwarf_tag(&die);
        bool is_code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
                       tag == DW_TAG_lexical_block;
        bool is_around = tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
                         tag == DW_TAG_class_type || tag == DW_TAG_enumeration_type;
        if (is_around && find_scope(&die, pc, depth + 1, found)) return true;
        if (!is_code || dwarf_haspc(&die, pc) != 1) continue;
        inside = die;
        *found = die;
        find_scope(&inside, pc, depth + 1, found);
        return true;
    } while (!dwarf_siblingof(&die, &die));
    return false;
}

void types_each_local(struct types *types, uint64_t pc,
                      bool (*see)(void *context, const struct type_local *local), void *context) {
    Dwarf_Die unit, found, *scopes = NULL;
    if (!type_index_unit_at(&types->names, types->debug.dwarf, pc, &unit)) return;
    // around an inlined function these are what its definition is in, not what it is inlined into
    int count = find_scope(&unit, pc, 0, &found) ? dwarf_getscopes_die(&found, &scopes) : 0;
    struct type_local local = {0};
    for (int i = 0; i < count; i++)
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram && !local.frame_base)
            read_expression(&scopes[i], DW_AT_frame_base, pc, &local.frame_base,
                            &local.frame_operations);
    for (int i = 0; i < count && i < FUNCTIONS_MAX; i++) {
        int tag = dwarf_tag(&scopes[i]);
        bool is_code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
                       tag == DW_TAG_lexical_block;
        if (!is_code) continue;
        local.function = NULL;
        for (int k = i; k < count && !local.function; k++)
            if (dwarf_tag(&scopes[k]) != DW_TAG_lexical_block)
                local.function = dwarf_diename(&scopes[k]);
        if (local.function && !see_locals(types, &scopes[i], local, pc, see, context)) break;
    }
    free(scopes);
}
