// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/scope.h"

#include <string.h>

#include "runtime/stack/hash.h"
#include "runtime/stack/module.h"

struct scopes scopes;

// Twice as many places as there can be scopes; a search that finds so many others gives up.
enum { TABLE_SLOTS = 2 * CAIRN_SCOPE_LIMIT, TABLE_PROBES = 64, NAME_BYTES = 256 };

uint32_t scope_limit(void) {
    if (!scopes.entries.base) return 0;
    uint64_t used = __atomic_load_n(scopes.entries.used_bytes, __ATOMIC_ACQUIRE);
    if (used > scopes.entries.capacity_bytes) used = scopes.entries.capacity_bytes;
    return (uint32_t)(used / sizeof(struct cairn_scope));
}

const char *scope_name(const struct cairn_scope *scope) {
    return (const char *)modules.strings.base + scope->name;
}

static bool table_is_ready(void) {
    uint32_t *none = NULL;
    if (__atomic_load_n(&scopes.table, __ATOMIC_ACQUIRE)) return true;
    uint32_t *made = sys_map(TABLE_SLOTS * sizeof *made);
    if (!made) return false;
    if (!__atomic_compare_exchange_n(&scopes.table, &none, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        sys_unmap(made, TABLE_SLOTS * sizeof *made);
    return true;
}

static uint64_t name_hash(enum cairn_scope_kind kind, uint32_t parent, const char *name) {
    uint64_t hash = hash_mix((uint64_t)parent << 2 | kind, HASH_FACTOR);
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * HASH_FACTOR;
    return hash ^ hash >> 32;
}

static bool scope_is(uint32_t id, enum cairn_scope_kind kind, uint32_t parent, const char *name) {
    const struct cairn_scope *scope = scope_at(id);
    return scope->kind == kind && scope->parent == parent && !strcmp(scope_name(scope), name);
}

static uint32_t scope_make(enum cairn_scope_kind kind, uint32_t parent, const char *name) {
    struct cairn_scope *scope = region_take(&scopes.entries, sizeof *scope);
    if (scope == scope_at(0)) scope = region_take(&scopes.entries, sizeof *scope);  // 0 is none
    uint32_t text = scope ? module_string(name) : 0;
    if (!text) return 0;
    scope->kind = kind;
    scope->name = text;
    scope->parent = parent;
    __atomic_store_n(&scope->is_ready, 1, __ATOMIC_RELEASE);
    return (uint32_t)(scope - scope_at(0));
}

// With `may_make` it is made if need be.
static uint32_t scope_find(enum cairn_scope_kind kind, uint32_t parent, const char *name,
                           bool may_make) {
    uint64_t hash = name_hash(kind, parent, name);
    uint32_t made = 0;
    for (uint32_t i = 0; i < TABLE_PROBES; i++) {
        uint32_t *slot = &scopes.table[(hash + i) % TABLE_SLOTS];
        uint32_t id = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (!id && !may_make) return 0;
        if (!id && !made && !(made = scope_make(kind, parent, name))) return 0;
        if (!id &&
            __atomic_compare_exchange_n(slot, &id, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return made;
        if (scope_is(id, kind, parent, name)) return id;
    }
    return 0;
}

static uint32_t scope_of_cut_name(enum cairn_scope_kind kind, uint32_t parent, const char *name,
                                  bool may_make) {
    char cut[NAME_BYTES];
    size_t length = strnlen(name, sizeof cut - 1);
    if (!scopes.entries.base || !length || !table_is_ready()) return 0;
    memcpy(cut, name, length);
    cut[length] = 0;
    return scope_find(kind, parent, cut, may_make);
}

uint32_t scope_of_name(enum cairn_scope_kind kind, uint32_t parent, const char *name) {
    return scope_of_cut_name(kind, parent, name, true);
}

uint32_t scope_seek(enum cairn_scope_kind kind, uint32_t parent, const char *name) {
    return scope_of_cut_name(kind, parent, name, false);
}

void scopes_inherit(void) {
    for (uint32_t id = 1; id < scope_limit(); id++) {
        struct cairn_scope *scope = scope_at(id);
        bool is_function = scope->kind == CAIRN_SCOPE_WRAPPED;  // how it is led is so here, too
        scope->entries = is_function ? scope->entries : 0;
        scope->allocations = is_function ? scope->allocations : 0;
        scope->ended = scope->frees = 0;
        scope->allocated_bytes = scope->freed_bytes = 0;
        scope->rise_bytes = scope->peak_bytes = 0;
    }
}
