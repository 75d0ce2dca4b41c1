// SPDX-License-Identifier: Apache-2.0
// The types that blocks have (typed.h): their numbers, the classes that objects say they are of,
// and names for people.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/heap/typed_internal.h"
#include "tool/symbol/name_clean.h"

uint32_t typed_kind_id(struct typed *typed, const struct type *type) {
    uint64_t hash = hash_mix((uintptr_t)type, index_table_seed());
    struct index_probe probe = index_probe_start(&typed->ids, hash);
    for (uint32_t i; index_probe_next(&typed->ids, &probe, &i);)
        if (typed->kinds.items[i].type == type) return i;
    struct typed_kind *kind = array_push(&typed->kinds);
    if (!kind) return 0;
    *kind = (struct typed_kind){.type = type};
    uint32_t id = (uint32_t)(typed->kinds.count - 1);
    if (!index_table_insert(&typed->ids, hash, id)) return 0;
    return id;
}

// clang writes the constants of enumerations into names of classes where linkers' names have their
// numbers. Those of std::make_shared's blocks are known.
static const struct type *find_class(struct types *types, const char *name) {
    static const char *const policies[] = {"__gnu_cxx::_S_single", "__gnu_cxx::_S_mutex",
                                           "__gnu_cxx::_S_atomic"};
    static const char cast[] = "(__gnu_cxx::_Lock_policy)";
    const struct type *found = types_named(types, name);
    char other[LAYOUT_TEXT_BYTES];
    const char *at = found ? NULL : strstr(name, cast), *number = at ? at + sizeof cast - 1 : NULL;
    if (!number || *number < '0' || *number > '2') return found;
    int length = snprintf(other, sizeof other, "%.*s%s%s", (int)(at - name), name,
                          policies[*number - '0'], number + 1);
    return length > 0 && (size_t)length < sizeof other ? find_class(types, other) : NULL;
}

const struct type *typed_class_at(struct typed *typed, uint64_t address, bool *is_class) {
    const struct core_type *type = core_type_of_block(typed->types, address, sizeof(uint64_t));
    *is_class = type && type->kind == CORE_TYPE_CLASS;
    if (!type || type->kind != CORE_TYPE_CLASS || !type->whole_name) return NULL;
    uint64_t hash = hash_mix(type->signature, index_table_seed());
    struct index_probe probe = index_probe_start(&typed->class_index, hash);
    for (uint32_t i; index_probe_next(&typed->class_index, &probe, &i);)
        if (typed->classes.items[i].signature == type->signature)
            return typed->classes.items[i].type;
    struct typed_class *class = array_push(&typed->classes);
    if (!class) return NULL;
    *class = (struct typed_class){.signature = type->signature};
    for (size_t i = 0; i < typed->modules.count && !class->type; i++)
        class->type = find_class(typed->modules.items[i].types, type->whole_name);
    if (!index_table_insert(&typed->class_index, hash, (uint32_t)(typed->classes.count - 1)))
        typed->classes.count--;
    return class->type;
}

bool typed_is_vague(const struct type *type) {
    return type->kind == TYPE_NONE || !type->bytes ||
           (type->kind == TYPE_NUMBER && type->bytes == 1);
}

// --- names

// Without what a Rust type has as its last argument unless it is told otherwise.
static void drop_default_allocator(char *text) {
    static const char argument[] = ", alloc::alloc::Global";
    const size_t length = sizeof argument - 1;
    for (char *at; (at = strstr(text, argument));)
        memmove(at, at + length, strlen(at + length) + 1);
}

void typed_write_name(const struct type *type, char *text, size_t size) {
    char whole[LAYOUT_TEXT_BYTES / 2];
    type_write_name(type, whole, sizeof whole);
    drop_default_allocator(whole);
    char *clean = name_clean_cxx(whole);
    text_escape(text, size, clean ? clean : whole);
    free(clean);
}

const char *typed_name(struct typed *typed, uint64_t address, uint64_t size) {
    char text[LAYOUT_TEXT_BYTES];
    uint64_t place;
    if (!block_map_find(&typed->reach->map, address, &place)) return NULL;
    uint32_t number = core_graph_number(&typed->graph, place);
    struct typed_kind *kind = &typed->kinds.items[typed->type_ids[number]];
    const struct type *type = kind->type;
    if (!type) return NULL;
    bool are_several = type->bytes && size / type->bytes >= ELEMENTS_LEAST &&
                       !typed_has_tail(type) && !typed_is_single(typed, number);
    const char **name = &kind->names[are_several];
    if (*name) return *name;
    typed_write_name(type, text, sizeof text - sizeof "[]");
    if (are_several) snprintf(text + strlen(text), sizeof "[]", "[]");
    *name = string_pool_intern(typed->store, text, strlen(text));
    return *name;
}
