// SPDX-License-Identifier: Apache-2.0
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/model/index_table.h"
#include "tool/types/types_internal.h"

enum {
    LINKS_MAX = 32,        // typedefs and qualifiers of one another
    FIELDS_MAX = 1 << 16,  // of one struct
    DIMENSIONS_MAX = 8,    // of one array
};

struct type_source {
    struct types *types;
    Dwarf_Die die;       // without an address: there is none
    unsigned dimension;  // of an array with several: those before it are others'
    bool has_fields, has_target, has_first_parameter;
    struct type_fields fields;
    const struct type *target;
    const struct type *first_parameter;
};

// --- opening

struct types *types_open(const struct located *files, const struct symbol_options *options) {
    struct types *types = calloc(1, sizeof *types);
    if (!types) return NULL;
    types->none = (struct type){.name = ""};
    types->debug = (struct debug_information){.alternate = IMAGE_CLOSED};
    types->store = string_pool_open();
    if (types->store) debug_information_open(&types->debug, files, options, types->store);
    if (types->debug.dwarf) type_index_add(&types->names, types->debug.dwarf);
    if (types->debug.alternate_dwarf) type_index_add(&types->names, types->debug.alternate_dwarf);
    if (types->debug.dwarf && type_index_settle(&types->names)) return types;
    types_close(types);
    return NULL;
}

void types_close(struct types *types) {
    if (!types) return;
    for (size_t i = 0; i < types->known.count; i++) {
        struct type_source *source = types->known.items[i].type->source;
        if (source) free((void *)(uintptr_t)source->fields.items);
        if (source) source->fields.items = NULL;
    }
    array_free(&types->known);
    index_table_free(&types->index);
    type_index_free(&types->names);
    debug_information_close(&types->debug);
    if (types->store) string_pool_close(types->store);
    free(types);
}

// --- attributes

static bool number_of(Dwarf_Die *die, unsigned name, uint64_t *number) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    Dwarf_Sword signed_value;
    if (!dwarf_attr_integrate(die, name, &attribute)) return false;
    if (!dwarf_formudata(&attribute, &value)) {
        *number = value;
        return true;
    }
    if (dwarf_formsdata(&attribute, &signed_value)) return false;
    *number = (uint64_t)signed_value;
    return true;
}

// The DIE of a type that another DIE refers to; false: void.
static bool follow(Dwarf_Die *die, unsigned name, Dwarf_Die *found) {
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, name, &attribute) && dwarf_formref_die(&attribute, found);
}

static bool is_transparent(int tag) {
    return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
           tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type || tag == DW_TAG_shared_type ||
           tag == DW_TAG_template_alias || tag == DW_TAG_immutable_type ||
           tag == DW_TAG_packed_type;
}

// Looks through what has only another name, or qualifies; `name`: the innermost typedef's. False:
// void.
static bool look_through(Dwarf_Die *die, const char **name) {
    for (int i = 0; is_transparent(dwarf_tag(die)); i++) {
        Dwarf_Die next;
        if (dwarf_tag(die) == DW_TAG_typedef) *name = dwarf_diename(die);
        if (i == LINKS_MAX || !follow(die, DW_AT_type, &next)) return false;
        *die = next;
    }
    return true;
}

// --- types

static enum type_kind kind_of(Dwarf_Die *die) {
    switch (dwarf_tag(die)) {
    case DW_TAG_base_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_ptr_to_member_type:
        return TYPE_NUMBER;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        return TYPE_POINTER;
    case DW_TAG_array_type:
        return TYPE_ARRAY;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
        return TYPE_STRUCT;
    case DW_TAG_union_type:
        return TYPE_UNION;
    default:
        return TYPE_NONE;
    }
}

// The name of a type in full.
static const char *name_of(struct types *types, Dwarf_Die *die, const char *typedef_name) {
    char text[TYPE_NAME_BYTES];
    const struct named_die *entry = type_index_entry(&types->names, die);
    const char *name = dwarf_diename(die);
    if (!name) name = typedef_name ? typedef_name : "";
    if (entry && type_index_qualify(&types->names, entry->scope, name, text, sizeof text))
        name = text;
    name = string_pool_intern(types->store, name, strlen(name));
    return name ? name : "";
}

// A declaration becomes the definition of that name, a definition the first one that is alike.
static void find_definition(struct types *types, Dwarf_Die *die) {
    char text[TYPE_NAME_BYTES];
    const struct named_die *entry = type_index_entry(&types->names, die);
    if (!entry ||
        !type_index_qualify(&types->names, entry->scope, dwarf_diename(die), text, sizeof text))
        return;
    const struct named_die *found =
        type_index_find(&types->names, text, entry->is_definition ? die : NULL);
    if (found) *die = found->die;
}

static uint64_t hash_of(const void *address, unsigned dimension) {
    return hash_mix((uintptr_t)address, index_table_seed() + dimension);
}

static const struct type *find_known(const struct types *types, const void *address,
                                     unsigned dimension) {
    struct index_probe probe = index_probe_start(&types->index, hash_of(address, dimension));
    for (uint32_t i; index_probe_next(&types->index, &probe, &i);)
        if (types->known.items[i].address == address &&
            types->known.items[i].dimension == dimension)
            return types->known.items[i].type;
    return NULL;
}

static const struct type *make_type(struct types *types, const Dwarf_Die *die, unsigned dimension,
                                    const char *typedef_name) {
    struct type *type = string_pool_alloc(types->store, sizeof *type);
    struct type_source *source = string_pool_alloc(types->store, sizeof *source);
    Dwarf_Die own = *die;
    Dwarf_Word bytes;
    struct type_role *role = string_pool_alloc(types->store, sizeof *role);
    if (!type || !source || !role) return &types->none;
    *source = (struct type_source){.types = types, .die = *die, .dimension = dimension};
    *type = (struct type){.kind = kind_of(&own), .source = source, .role = role};
    type->name = name_of(types, &own, typedef_name);
    Dwarf_Die unit;
    type->is_rust = dwarf_diecu(&own, &unit, NULL, NULL) && dwarf_srclang(&unit) == DW_LANG_Rust;
    bool has_size = !dimension && !dwarf_hasattr(&own, DW_AT_declaration) &&
                    type->kind != TYPE_NONE && !dwarf_aggregate_size(&own, &bytes);
    if (has_size) type->bytes = bytes;
    if (dimension) {
        const struct type *target = type_target(type);
        uint64_t count = type_elements(type);
        if (!__builtin_mul_overflow(target->bytes, count, &bytes)) type->bytes = bytes;
    }
    return type;
}

static const struct type *type_of_die(struct types *types, Dwarf_Die *die, unsigned dimension) {
    const void *address = die->addr;
    const char *typedef_name = NULL;
    const struct type *type = find_known(types, address, dimension);
    if (type) return type;
    Dwarf_Die own = *die;
    if (!look_through(&own, &typedef_name)) return &types->none;
    enum type_kind kind = kind_of(&own);
    if (kind == TYPE_STRUCT || kind == TYPE_UNION) find_definition(types, &own);
    bool is_other = own.addr != address;
    if (is_other) type = find_known(types, own.addr, dimension);
    bool is_new = !type;
    if (is_new) type = make_type(types, &own, dimension, typedef_name);
    const void *addresses[] = {own.addr, address};
    for (int i = is_new ? 0 : 1; i <= (is_other ? 1 : 0); i++) {
        struct known_type *known = type == &types->none ? NULL : array_push(&types->known);
        if (!known) return type;
        *known = (struct known_type){addresses[i], dimension, type};
        if (!index_table_insert(&types->index, hash_of(addresses[i], dimension),
                                (uint32_t)(types->known.count - 1)))
            return type;
    }
    return type;
}

const struct type *types_of(struct types *types, Dwarf_Die *die) {
    Dwarf_Die found;
    return follow(die, DW_AT_type, &found) ? type_of_die(types, &found, 0) : &types->none;
}

// --- arrays and pointers

// Counts of the array's dimensions; 0 where it is not known. Returns how many there are.
static unsigned dimensions_of(Dwarf_Die *array, uint64_t counts[DIMENSIONS_MAX]) {
    Dwarf_Die die;
    unsigned count = 0;
    if (dwarf_child(array, &die)) return 0;
    do {
        uint64_t number = 0, lower = 0;
        if (dwarf_tag(&die) != DW_TAG_subrange_type) continue;
        number_of(&die, DW_AT_lower_bound, &lower);
        if (!number_of(&die, DW_AT_count, &number) && number_of(&die, DW_AT_upper_bound, &number))
            number = number + 1 - lower;
        counts[count++] = number;
    } while (count < DIMENSIONS_MAX && !dwarf_siblingof(&die, &die));
    return count;
}

const struct type *type_target(const struct type *type) {
    struct type_source *source = type->source;
    uint64_t counts[DIMENSIONS_MAX];
    if (type->kind != TYPE_POINTER && type->kind != TYPE_ARRAY) return NULL;
    if (source->has_target) return source->target;
    source->has_target = true;
    source->target = &source->types->none;
    bool is_inside =
        type->kind == TYPE_ARRAY && source->dimension + 1 < dimensions_of(&source->die, counts);
    source->target = is_inside ? type_of_die(source->types, &source->die, source->dimension + 1)
                               : types_of(source->types, &source->die);
    return source->target;
}

uint64_t type_elements(const struct type *type) {
    uint64_t counts[DIMENSIONS_MAX];
    if (type->kind != TYPE_ARRAY) return 0;
    unsigned count = dimensions_of(&type->source->die, counts);
    return type->source->dimension < count ? counts[type->source->dimension] : 0;
}

// --- fields

struct field_list {
    ARRAY(struct type_field) items;
    struct type_fields *fields;
};

static void add_field(struct types *types, struct field_list *list, Dwarf_Die *die,
                      const struct type_field *like) {
    uint64_t offset = 0;
    bool is_left_out = dwarf_hasattr(die, DW_AT_external) || dwarf_hasattr(die, DW_AT_bit_size);
    if (is_left_out || list->items.count >= FIELDS_MAX) return;
    if (!number_of(die, DW_AT_data_member_location, &offset) &&
        dwarf_hasattr(die, DW_AT_data_member_location))
        return;  // a virtual base
    struct type_field *field = array_push(&list->items);
    if (!field) return;
    *field = *like;
    field->name = dwarf_diename(die);
    field->type = types_of(types, die);
    field->offset = offset;
    field->is_base = dwarf_tag(die) == DW_TAG_inheritance;
    if (field->is_base) field->name = NULL;
}

static void add_variant(struct types *types, struct field_list *list, Dwarf_Die *variant) {
    struct type_field like = {.is_variant = true};
    Dwarf_Die die;
    like.is_other_variant = !number_of(variant, DW_AT_discr_value, &like.value);
    if (dwarf_child(variant, &die)) return;
    do {
        if (dwarf_tag(&die) == DW_TAG_member) add_field(types, list, &die, &like);
    } while (!dwarf_siblingof(&die, &die));
}

static void add_variants(struct types *types, struct field_list *list, Dwarf_Die *part) {
    Dwarf_Die die;
    bool has_discriminant = follow(part, DW_AT_discr, &die);
    if (has_discriminant) {
        list->fields->discriminant = types_of(types, &die);
        number_of(&die, DW_AT_data_member_location, &list->fields->discriminant_offset);
    }
    if (dwarf_child(part, &die)) return;
    do {
        if (dwarf_tag(&die) == DW_TAG_variant) add_variant(types, list, &die);
    } while (!dwarf_siblingof(&die, &die));
}

static void read_fields(struct type_source *source, struct field_list *list) {
    Dwarf_Die die;
    if (dwarf_child(&source->die, &die)) return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
            add_field(source->types, list, &die, &(struct type_field){0});
        else if (tag == DW_TAG_variant_part)
            add_variants(source->types, list, &die);
    } while (!dwarf_siblingof(&die, &die));
}

struct type_fields type_fields(const struct type *type) {
    struct type_source *source = type->source;
    if (type->kind != TYPE_STRUCT && type->kind != TYPE_UNION) return (struct type_fields){0};
    if (source->has_fields) return source->fields;
    struct field_list list = {.fields = &source->fields};
    source->has_fields = true;
    read_fields(source, &list);
    source->fields.items = list.items.items;
    source->fields.count = list.items.count;
    return source->fields;
}

static const struct type *find_parameter(const struct type *type, unsigned number) {
    Dwarf_Die die;
    bool is_one = type->kind == TYPE_STRUCT || type->kind == TYPE_UNION;
    if (!is_one || dwarf_child(&type->source->die, &die)) return NULL;
    do {
        if (dwarf_tag(&die) == DW_TAG_template_type_parameter && !number--)
            return types_of(type->source->types, &die);
    } while (!dwarf_siblingof(&die, &die));
    return NULL;
}

const struct type *type_parameter(const struct type *type, unsigned number) {
    struct type_source *source = type->source;
    if (number || !source) return source ? find_parameter(type, number) : NULL;
    if (!source->has_first_parameter) source->first_parameter = find_parameter(type, 0);
    source->has_first_parameter = true;
    return source->first_parameter;
}

void type_write_name(const struct type *type, char *text, size_t size) {
    const char *name = type->kind == TYPE_NONE && !*type->name ? "void" : type->name;
    if (type->kind == TYPE_POINTER) {
        type_write_name(type_target(type), text, size);
        snprintf(text + strlen(text), size - strlen(text),
                 text[strlen(text) - 1] == '*' ? "*" : " *");
    } else if (type->kind == TYPE_ARRAY) {
        type_write_name(type_target(type), text, size);
        snprintf(text + strlen(text), size - strlen(text), "[%" PRIu64 "]", type_elements(type));
    } else {
        snprintf(text, size, "%s", *name ? name : "(no name)");
    }
}

const struct type *types_named(struct types *types, const char *name) {
    const struct named_die *entry = type_index_find(&types->names, name, NULL);
    Dwarf_Die die;
    if (!entry) return NULL;
    die = entry->die;
    return type_of_die(types, &die, 0);
}

const struct type *types_allocated(struct types *types, uint64_t return_address) {
    const struct call_die *call = type_index_call(&types->names, return_address);
    Dwarf_Attribute attribute;
    Dwarf_Die die;
    if (!call) return NULL;
    Dwarf_Die at = call->die;
    if (!dwarf_formref_die(dwarf_attr(&at, DW_AT_OF_ALLOCATION, &attribute), &die)) return NULL;
    const struct type *type = type_of_die(types, &die, 0);
    return type->kind == TYPE_NONE ? NULL : type;
}
