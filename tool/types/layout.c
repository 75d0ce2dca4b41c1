// SPDX-License-Identifier: Apache-2.0
#include "tool/types/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 48, MEMBER_DEPTH_MAX = 12, DISCRIMINANT_BYTES_MAX = 8 };

static const uint64_t places_max = UINT64_C(1) << 40;

enum role {
    ROLE_PLAIN,
    ROLE_NODES,     // links nodes, `part`
    ROLE_NODE,      // is one
    ROLE_BUFFER,    // for one value, `part`
    ROLE_OPTIONAL,  // has its value only if it says so
    ROLE_VARIANT,   // says which of its alternatives it has
    ROLE_ALTERNATIVES,
    ROLE_ELEMENTS,  // a pointer to bytes that are elements, `part`
    ROLE_TABLE,     // likewise, behind the elements
};

static bool begins(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

// --- roles

static const char *const node_names[] = {"std::_Rb_tree_node<", "std::__detail::_Hash_node<",
                                         "std::_List_node<", "std::_Fwd_list_node<"};
static const char *const node_bases[] = {
    "std::_Rb_tree_node_base", "std::__detail::_Hash_node_base", "std::__detail::_List_node_base",
    "std::_Fwd_list_node_base"};
enum { NODE_NAMES = sizeof node_names / sizeof *node_names };

static const struct {
    const char *begin;
    enum role role;
} role_names[] = {
    {"std::_Rb_tree<", ROLE_NODES},
    {"std::_Hashtable<", ROLE_NODES},
    {"std::_List_base<", ROLE_NODES},
    {"std::__cxx11::_List_base<", ROLE_NODES},
    {"std::_Fwd_list_base<", ROLE_NODES},
    {"__gnu_cxx::__aligned_membuf<", ROLE_BUFFER},
    {"__gnu_cxx::__aligned_buffer<", ROLE_BUFFER},
    {"std::_Optional_payload_base<", ROLE_OPTIONAL},
    {"std::__detail::__variant::_Variant_storage<", ROLE_VARIANT},
    {"std::__detail::__variant::_Variadic_union<", ROLE_ALTERNATIVES},
    {"alloc::raw_vec::RawVec<", ROLE_ELEMENTS},
    {"hashbrown::raw::RawTable<", ROLE_TABLE},
};

static bool is_called_node(const struct type *type) {
    for (int i = 0; i < NODE_NAMES; i++)
        if (begins(type->name, node_names[i])) return true;
    return false;
}

bool layout_is_link(const struct type *type) {
    for (int i = 0; i < NODE_NAMES; i++)
        if (!strcmp(type->name, node_bases[i])) return true;
    return false;
}

// Containers derive from the allocator of their nodes, which has the node as its parameter.
static const struct type *find_node(const struct type *type, int depth) {
    const struct type *parameter = type_parameter(type, 0);
    if (parameter && is_called_node(parameter)) return parameter;
    const struct type *inner = parameter ? type_parameter(parameter, 0) : NULL;
    if (inner && is_called_node(inner)) return inner;
    const struct type_fields fields = type_fields(type);
    for (size_t i = 0; i < fields.count && depth < MEMBER_DEPTH_MAX; i++) {
        const struct type *found = fields.items[i].is_base || depth < 2
                                       ? find_node(fields.items[i].type, depth + 1)
                                       : NULL;
        if (found) return found;
    }
    return NULL;
}

static bool is_of_library(const char *name) {
    static const char *const begins_with[] = {
        "std::", "__gnu_cxx::", "alloc::", "core::", "hashbrown::"};
    for (size_t i = 0; i < sizeof begins_with / sizeof *begins_with; i++)
        if (begins(name, begins_with[i])) return true;
    return false;
}

static bool have_pointers(const struct type *type, int depth) {
    const struct type_fields fields = type_fields(type);
    if (type->kind == TYPE_POINTER || depth == DEPTH_MAX) return true;
    if (type->kind == TYPE_ARRAY) return layout_has_pointers(type_target(type));
    for (size_t i = 0; i < fields.count; i++)
        if (layout_has_pointers(fields.items[i].type)) return true;
    return false;
}

static struct type_role *role_of(const struct type *type) {
    struct type_role *role = type->role;
    if (role->is_known) return role;
    *role = (struct type_role){.is_known = true, .is_library = is_of_library(type->name)};
    role->is_hidden = role->is_library && !begins(type->name, "std::pair<");
    for (size_t i = 0; i < sizeof role_names / sizeof *role_names; i++)
        if (layout_is_of_template(type, role_names[i].begin))
            role->kind = (uint8_t)role_names[i].role;
    if (is_called_node(type)) role->kind = ROLE_NODE;
    if (role->kind == ROLE_NODES) role->part = find_node(type, 0);
    if (role->kind == ROLE_BUFFER || role->kind == ROLE_ELEMENTS || role->kind == ROLE_TABLE)
        role->part = type_parameter(type, 0);
    role->extents = role->is_library ? (uint8_t)layout_extents_kind(type) : 0;
    role->has_pointers = role->kind == ROLE_BUFFER && role->part ? have_pointers(role->part, 0)
                                                                 : have_pointers(type, 0);
    return role;
}

bool layout_is_node(const struct type *type) {
    return type->role && role_of(type)->kind == ROLE_NODE;
}

bool layout_has_pointers(const struct type *type) {
    if (type->kind == TYPE_POINTER) return true;
    if (type->kind == TYPE_NONE || type->kind == TYPE_NUMBER || !type->role) return false;
    return role_of(type)->has_pointers;
}

// --- words

static void say(struct layout *layout, const char *more) {
    size_t length = strlen(layout->text);
    snprintf(layout->text + length, sizeof layout->text - length, "%s", more);
}

static void say_field(struct layout *layout, const struct type *type,
                      const struct type_field *field) {
    bool is_left_out = layout->words == LAYOUT_SHORT ? role_of(type)->is_hidden : layout->has_base;
    if (layout->words == LAYOUT_NONE || !field->name || is_left_out) return;
    say(layout, ".");
    say(layout, field->name);
}

bool layout_is_library(const struct type *type) {
    return type->role && role_of(type)->is_library;
}

bool layout_is_unnamed(const struct type *type) {
    return layout_is_library(type) || type->is_rust;
}

void layout_write_exact(const struct type *type, char *text, size_t size) {
    if (type->kind == TYPE_POINTER) {
        const struct type *target = type_target(type);
        bool is_named = target->kind != TYPE_NONE && !layout_is_unnamed(target);
        if (is_named)
            layout_write_exact(target, text, size);
        else
            snprintf(text, size, "void");
        snprintf(text + strlen(text), size - strlen(text), " *");
    } else if (type->kind == TYPE_NONE || type->kind == TYPE_ARRAY || layout_is_unnamed(type) ||
               !*type->name) {
        snprintf(text, size, "char");
    } else {
        snprintf(text, size, "%s", type->name);
    }
}

// The expression becomes that of what lies at an offset, behind the beginning of a library's
// object.
static void say_inside(struct layout *layout, const struct type *type, uint64_t offset) {
    char name[LAYOUT_TEXT_BYTES / 4];
    layout_write_exact(type, name, sizeof name);
    snprintf(layout->text, sizeof layout->text, "(*(%s *)((char *)&%.2900s + %" PRIu64 "))", name,
             layout->base, offset - layout->base_offset);
}

// An object of a library begins, or one of the program inside of one.
static void say_struct(struct layout *layout, const struct type *type, uint64_t offset) {
    if (layout->words != LAYOUT_EXACT || layout_is_unnamed(type) == layout->has_base) return;
    if (layout->has_base) {
        say_inside(layout, type, offset);
    } else {
        memcpy(layout->base, layout->text, sizeof layout->base);
        layout->base_offset = offset;
    }
    layout->has_base = !layout->has_base;
}

// --- walking

static void walk(struct layout *layout, const struct type *type, uint64_t offset);

static bool read_number(const struct layout *layout, uint64_t offset, uint64_t bytes,
                        uint64_t *number) {
    *number = 0;
    if (!bytes || bytes > DISCRIMINANT_BYTES_MAX || offset > layout->size ||
        bytes > layout->size - offset)
        return false;
    memcpy(number, layout->bytes + offset, bytes);
    return true;
}

static const struct type *target_of(const struct layout *layout, const struct type *declared) {
    if (layout->node && layout_is_link(declared)) return layout->node;
    bool is_bytes = declared->kind == TYPE_NUMBER && declared->bytes == 1;
    return layout->element && is_bytes ? layout->element : declared;
}

static const struct layout_extent *extent_at(const struct layout *layout, uint64_t offset) {
    for (unsigned i = layout->extents.count; i-- > 0;)
        if (layout->extents.items[i].offset == offset) return &layout->extents.items[i];
    return NULL;
}

static void walk_pointer(struct layout *layout, const struct type *type, uint64_t offset) {
    const struct layout_extent *extent = extent_at(layout, offset);
    if (extent && extent->is_end) return;
    if (!layout->see || offset > layout->size || sizeof(uint64_t) > layout->size - offset) return;
    const struct type *declared = type_target(type);
    struct layout_pointer pointer = {.offset = offset,
                                     .target = target_of(layout, declared),
                                     .declared = declared,
                                     .holder = layout->holder,
                                     .is_guess = layout->guesses,
                                     .extent = extent};
    if (pointer.target != declared && layout->element) pointer.back = layout->back;
    layout->is_ended = !layout->see(layout->context, &pointer);
    if (layout->is_ended && layout->has_base) say_inside(layout, type, offset);
}

static void walk_array(struct layout *layout, const struct type *type, uint64_t offset) {
    const struct type *element = type_target(type);
    uint64_t count = type_elements(type);
    size_t length = strlen(layout->text);
    bool is_said = layout->words && !layout->has_base;
    if (!element->bytes || offset > layout->size) return;
    uint64_t room = (layout->size - offset) / element->bytes;
    if (!count || count > room) count = room;
    for (uint64_t i = 0; i < count && !layout->is_ended; i++) {
        char index[24];
        snprintf(index, sizeof index, "[%" PRIu64 "]", i);
        if (is_said) say(layout, index);
        walk(layout, element, offset + i * element->bytes);
        if (!layout->is_ended) layout->text[length] = 0;
    }
}

// Whether the field is there, by what the object says of itself.
static bool is_there(const struct layout *layout, const struct type *type,
                     const struct type_fields *fields, const struct type_field *field,
                     uint64_t offset) {
    uint64_t number;
    if (role_of(type)->kind == ROLE_ALTERNATIVES && field->name)
        return !strcmp(field->name, layout->alternative ? "_M_rest" : "_M_first");
    if (!field->is_variant || !fields->discriminant) return true;
    const struct type *discriminant = fields->discriminant;
    if (!read_number(layout, offset + fields->discriminant_offset, discriminant->bytes, &number))
        return false;
    if (!field->is_other_variant) {
        uint64_t mask = discriminant->bytes < sizeof mask
                            ? (UINT64_C(1) << 8 * discriminant->bytes) - 1
                            : UINT64_MAX;
        return (field->value & mask) == number;
    }
    for (size_t i = 0; i < fields->count; i++)
        if (fields->items[i].is_variant && !fields->items[i].is_other_variant &&
            fields->items[i].value == number)
            return false;
    return true;
}

static void walk_fields(struct layout *layout, const struct type *type, uint64_t offset) {
    const struct type_fields fields = type_fields(type);
    char before[LAYOUT_TEXT_BYTES];
    if (layout->words) memcpy(before, layout->text, sizeof before);
    for (size_t i = 0; i < fields.count && !layout->is_ended; i++) {
        const struct type_field *field = &fields.items[i];
        if (!layout_has_pointers(field->type) || !is_there(layout, type, &fields, field, offset))
            continue;
        uint64_t alternative = layout->alternative;
        say_field(layout, type, field);
        if (role_of(type)->kind == ROLE_ALTERNATIVES) layout->alternative--;
        walk(layout, field->type, offset + field->offset);
        layout->alternative = alternative;
        if (layout->words && !layout->is_ended) memcpy(layout->text, before, sizeof before);
    }
}

// A number that the object has as its member.
static bool read_member(const struct layout *layout, const struct type *type, uint64_t offset,
                        const char *name, uint64_t *number) {
    uint64_t inside;
    const struct type *found;
    return layout_member(type, name, &inside, &found) &&
           read_number(layout, offset + inside, found->bytes, number);
}

// False: there is nothing in it.
static bool enter(struct layout *layout, const struct type *type, uint64_t offset) {
    const struct type_role *role = role_of(type);
    uint64_t number = 0;
    const struct layout_bytes bytes = {layout->bytes, layout->size};
    if (role->extents && !layout_add_extents(&layout->extents, bytes, type, offset)) {
        layout->is_contradicted = true;
        return false;
    }
    switch ((enum role)role->kind) {
    case ROLE_NODES:
        if (role->part) layout->node = role->part;
        break;
    case ROLE_ELEMENTS:
        layout->element = role->part;
        layout->back = 0;
        break;
    case ROLE_TABLE:
        layout->element = role->part;
        if (!role->part || !read_member(layout, type, offset, "bucket_mask", &number) || !number ||
            number > places_max)
            return false;
        layout->back = (number + 1) * role->part->bytes;
        break;
    case ROLE_OPTIONAL:
        layout->is_chosen = true;
        return read_member(layout, type, offset, "_M_engaged", &number) && number;
    case ROLE_VARIANT:
        layout->is_chosen = true;
        return read_member(layout, type, offset, "_M_index", &layout->alternative);
    case ROLE_ALTERNATIVES:
        layout->is_chosen = true;
        break;
    case ROLE_NODE:
        layout->node = type;
        break;
    default:
        break;
    }
    return true;
}

static void walk_struct(struct layout *layout, const struct type *type, uint64_t offset) {
    const struct type_role *role = role_of(type);
    const struct type *node = layout->node, *element = layout->element, *holder = layout->holder;
    unsigned guesses = layout->guesses, extent_count = layout->extents.count;
    uint64_t back = layout->back;
    bool is_chosen = layout->is_chosen, has_base = layout->has_base;
    uint64_t base_offset = layout->base_offset;
    char base[LAYOUT_TEXT_BYTES];
    if (has_base) memcpy(base, layout->base, sizeof base);
    if (layout->see_struct) layout->see_struct(layout->context, offset, type);
    if (!role->is_hidden) layout->holder = NULL;
    if (role->is_hidden && !holder) layout->holder = type;
    say_struct(layout, type, offset);
    if (type->kind == TYPE_UNION && !is_chosen) layout->guesses++;
    if (type->kind == TYPE_STRUCT) layout->is_chosen = false;
    if (enter(layout, type, offset)) {
        if (role->kind == ROLE_BUFFER && role->part) {
            walk(layout, role->part, offset);
        } else {
            walk_fields(layout, type, offset);
        }
    }
    layout->node = node;
    layout->element = element;
    layout->back = back;
    layout->holder = holder;
    layout->guesses = guesses;
    layout->extents.count = extent_count;
    layout->is_chosen = is_chosen;
    if (layout->is_ended) return;
    layout->has_base = has_base;
    layout->base_offset = base_offset;
    if (has_base) memcpy(layout->base, base, sizeof base);
}

static void walk(struct layout *layout, const struct type *type, uint64_t offset) {
    if (layout->depth == DEPTH_MAX || offset >= layout->size || !layout_has_pointers(type)) return;
    layout->depth++;
    if (type->kind == TYPE_POINTER)
        walk_pointer(layout, type, offset);
    else if (type->kind == TYPE_ARRAY)
        walk_array(layout, type, offset);
    else
        walk_struct(layout, type, offset);
    layout->depth--;
}

void layout_walk(struct layout *layout, const struct type *type, uint64_t offset) {
    layout->node = layout->element = layout->holder = NULL;
    layout->guesses = layout->depth = layout->extents.count = 0;
    layout->is_chosen = layout->is_ended = layout->has_base = layout->is_contradicted = false;
    walk(layout, type, offset);
}
