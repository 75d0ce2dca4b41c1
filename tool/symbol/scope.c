// SPDX-License-Identifier: Apache-2.0
// A function is entered only if it contains requested addresses, which skips most of the tree.
// Functions of local classes stand inside other functions, even inside abstract ones without
// code; when addresses are left over, a second walk goes into all of them.
#include "tool/symbol/scope.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/name.h"

#define DEPTH_MAX 512       // of the tree; what is deeper is not looked at
#define ORIGIN_HOPS_MAX 16  // instance, definition, declaration, and hostile circles
#define NAME_LENGTH_MAX 8192
#define STEPS_OF_RANGE 8

struct walk {
    struct request *requests;
    size_t count;
    const struct scope_use *use;
    bool is_c;         // names without qualification are whole names
    bool is_thorough;  // second walk: also into functions without requested addresses
    bool is_failed;
};

static const char *string_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

// The DIE that declares what `die` is an instance of; itself if it declares it.
static Dwarf_Die declaration_of(Dwarf_Die *die) {
    Dwarf_Die found = *die;
    for (int hops = 0; hops < ORIGIN_HOPS_MAX; hops++) {
        Dwarf_Attribute attribute;
        Dwarf_Attribute *link = dwarf_attr(&found, DW_AT_abstract_origin, &attribute);
        if (!link) link = dwarf_attr(&found, DW_AT_specification, &attribute);
        Dwarf_Die next;
        if (!link || !dwarf_formref_die(link, &next)) break;
        found = next;
    }
    return found;
}

// "PREFIX::NAME" from what surrounds the declaration; `name` itself if nothing does. A function
// that other files can see has no linkage name only if it is extern "C"; one that the compiler made
// up belongs nowhere.
static const char *qualified_name(struct walk *walk, Dwarf_Die *die, const char *name) {
    Dwarf_Die declaration = declaration_of(die);
    if (dwarf_hasattr(&declaration, DW_AT_external) ||
        dwarf_hasattr(&declaration, DW_AT_artificial))
        return name;
    const char *prefix = qualifier_find(walk->use->qualifier, &declaration);
    char joined[NAME_LENGTH_MAX];
    if (!prefix) return NULL;
    int length = prefix[0] ? snprintf(joined, sizeof joined, "%s::%s", prefix, name) : 0;
    if (length <= 0 || (size_t)length >= sizeof joined) return name;
    return string_pool_intern(walk->use->scratch, joined, (size_t)length);
}

// Where a lambda or closure begins: its own line, or that of its class.
static bool find_declared_line(struct walk *walk, Dwarf_Die *die, uint32_t *line) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_line, &attribute), &value)) {
        Dwarf_Die declaration = declaration_of(die);
        return qualifier_class_line(walk->use->qualifier, &declaration, line);
    }
    *line = value <= UINT32_MAX ? (uint32_t)value : 0;
    return true;
}

static bool name_scope(struct walk *walk, Dwarf_Die *die, struct scope *scope) {
    const char *name = string_attribute(die, DW_AT_linkage_name);
    if (!name) name = string_attribute(die, DW_AT_MIPS_linkage_name);
    scope->is_full_name = name || walk->is_c;
    if (!name) name = string_attribute(die, DW_AT_name);
    if (!name) return true;
    bool needs_prefix = !scope->is_full_name && (scope->caller || !walk->use->has_symtab);
    if (needs_prefix && !(name = qualified_name(walk, die, name))) return false;
    scope->linkage = string_pool_intern(walk->use->names, name, strlen(name));
    const char *readable = scope->linkage ? string_pool_readable(walk->use->names, name) : NULL;
    if (!readable) return false;
    const char *word = scope->is_full_name ? string_attribute(die, DW_AT_name) : NULL;
    if (word && !strncmp(word, "{async_", strlen("{async_"))) {
        char *async = name_of_async(readable, word);
        if (async)
            scope->linkage = readable = string_pool_intern(walk->use->names, async, strlen(async));
        free(async);
        if (!readable) return false;
    }
    bool is_closure = name_has_closure(readable) || !strcmp(name, "operator()");
    return !is_closure || find_declared_line(walk, die, &scope->declared_line);
}

static bool locate_call(struct walk *walk, Dwarf_Die *die, struct scope *scope) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value) &&
        value <= UINT32_MAX)
        scope->call_line = (uint32_t)value;
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value)) return true;
    return line_table_file(walk->use->files, value, walk->use->names, &scope->call_file);
}

static bool spend(struct walk *walk, uint64_t steps) {
    return effort_spend(walk->use->files->effort, steps);
}

// Where reading a DIE's ranges has come to.
struct ranges {
    ptrdiff_t offset;
    Dwarf_Addr base;
    struct dwp_ranges packed;
};

static bool ranges_next(const struct walk *walk, Dwarf_Die *die, struct ranges *ranges,
                        Dwarf_Addr *start, Dwarf_Addr *end) {
    const struct dwp_unit *unit = walk->use->packed;
    if (unit && dwarf_hasattr(die, DW_AT_ranges))
        return dwp_ranges_next(unit, die, &ranges->packed, start, end);
    ranges->offset = dwarf_ranges(die, ranges->offset, &ranges->base, start, end);
    return ranges->offset > 0;
}

// The scope of a function or inlined call if it contains requested addresses, else NULL.
static struct scope *enter(struct walk *walk, Dwarf_Die *die, struct scope *caller) {
    struct scope *scope = NULL;
    struct ranges ranges = {.offset = 0};
    for (Dwarf_Addr start, end; ranges_next(walk, die, &ranges, &start, &end);) {
        if (!spend(walk, STEPS_OF_RANGE)) break;
        size_t i = request_lower_bound(walk->requests, walk->count, start);
        for (; i < walk->count && walk->requests[i].address < end && spend(walk, 1); i++) {
            if (walk->requests[i].scope != caller) continue;
            if (!scope && !(scope = string_pool_alloc(walk->use->scratch, sizeof *scope)))
                goto fail;
            walk->requests[i].scope = scope;
        }
    }
    if (!scope) return NULL;
    scope->caller = caller;
    if (name_scope(walk, die, scope) && (!caller || locate_call(walk, die, scope))) return scope;
fail:
    walk->is_failed = true;
    return NULL;
}

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct scope *scope, int depth);

static void visit(struct walk *walk, Dwarf_Die *die, struct scope *scope, int depth) {
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        scope = enter(walk, die, NULL);
        if (scope || walk->is_thorough) walk_children(walk, die, scope, depth);
        break;
    case DW_TAG_inlined_subroutine:
        scope = scope ? enter(walk, die, scope) : NULL;
        if (scope) walk_children(walk, die, scope, depth);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
    case DW_TAG_common_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        walk_children(walk, die, scope, depth);
        break;
    default:
        break;
    }
}

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct scope *scope, int depth) {
    Dwarf_Die die;
    if (depth == DEPTH_MAX || dwarf_child(parent, &die)) return;
    const char *at;
    do {
        visit(walk, &die, scope, depth + 1);
        at = die.addr;
        // The way to the next sibling may lead through all that is inside.
    } while (!walk->is_failed && !dwarf_siblingof(&die, &die) &&
             spend(walk, (uint64_t)((const char *)die.addr - at)));
}

static bool is_c(Dwarf_Die *unit) {
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_Mips_Assembler:
        return true;
    default:
        return false;
    }
}

static bool is_complete(const struct walk *walk) {
    for (size_t i = 0; i < walk->count; i++)
        if (!walk->requests[i].scope) return false;
    return true;
}

bool scope_find(const struct scope_use *use, Dwarf_Die *unit, struct request *requests,
                size_t count) {
    struct walk walk = {.requests = requests, .count = count, .use = use, .is_c = is_c(unit)};
    walk_children(&walk, unit, NULL, 0);
    if (!walk.is_failed && !is_complete(&walk)) {
        walk.is_thorough = true;
        walk_children(&walk, unit, NULL, 0);
    }
    return !walk.is_failed;
}
