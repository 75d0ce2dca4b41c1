// SPDX-License-Identifier: Apache-2.0
// Both tables: open addressing with linear probing; taking out moves later entries up.
#include "runtime/api/arena.h"

#include "runtime/api/pool.h"
#include "runtime/stack/hash.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/lock.h"
#include "runtime/thread/gate.h"

// Addresses are kept complemented, so that leak scanners take nothing here for a pointer.
struct heap_arena {
    uint64_t key;     // ~handle; 0: empty
    uint64_t parent;  // key; 0: none
    uint64_t life;    // another one after each time that it was cleared
    uint64_t count, bytes;
    uint32_t scope, children;
};
struct arena_block {
    uint64_t key;  // ~address; 0: empty
    uint64_t bytes;
    uint64_t arena, life;
};

struct arenas {
    struct lock lock;
    uint32_t scope;
    uint64_t lives;
    struct heap_arena *list;
    uint64_t list_slots, list_used;  // powers of two; at most three quarters are used
    struct arena_block *blocks;
    uint64_t block_slots, blocks_used;
};

enum { FIRST_SLOTS = 256, USED_PARTS = 3, ALL_PARTS = 4 };

struct arenas *arenas_make(uint32_t scope) {
    struct arenas *arenas = sys_map(sizeof *arenas);
    if (!arenas) return NULL;
    *arenas = (struct arenas){
        .scope = scope, .list_slots = FIRST_SLOTS, .block_slots = FIRST_SLOTS, .lives = 1};
    arenas->list = sys_map(FIRST_SLOTS * sizeof *arenas->list);
    arenas->blocks = sys_map(FIRST_SLOTS * sizeof *arenas->blocks);
    return arenas->list && arenas->blocks ? arenas : NULL;
}

static bool take_lock(struct arenas *arenas) {
    if (lock_take(&arenas->lock, (uintptr_t)&gate_self)) return true;
    gate_count_loss(CAIRN_LOST_NESTED);
    return false;
}

static uint64_t home_of(uint64_t key, uint64_t slots) {
    return hash_mix(key, HASH_FACTOR) & (slots - 1);
}

// Where the key is, or the empty place where it belongs.
static struct heap_arena *arena_place(const struct arenas *arenas, uint64_t key) {
    uint64_t at = home_of(key, arenas->list_slots);
    while (arenas->list[at].key && arenas->list[at].key != key)
        at = (at + 1) & (arenas->list_slots - 1);
    return &arenas->list[at];
}

static struct arena_block *block_place(const struct arenas *arenas, uint64_t key) {
    uint64_t at = home_of(key, arenas->block_slots);
    while (arenas->blocks[at].key && arenas->blocks[at].key != key)
        at = (at + 1) & (arenas->block_slots - 1);
    return &arenas->blocks[at];
}

static struct heap_arena *arena_find(const struct arenas *arenas, uint64_t key) {
    struct heap_arena *arena = key ? arena_place(arenas, key) : NULL;
    return arena && arena->key ? arena : NULL;
}

static bool is_full(uint64_t used, uint64_t slots) {
    return (used + 1) * ALL_PARTS > slots * USED_PARTS;
}

static bool grow_list(struct arenas *arenas) {
    struct heap_arena *old = arenas->list, *list = sys_map(2 * arenas->list_slots * sizeof *list);
    uint64_t slots = arenas->list_slots;
    if (!list) return false;
    arenas->list = list;
    arenas->list_slots = 2 * slots;
    for (uint64_t i = 0; i < slots; i++)
        if (old[i].key) *arena_place(arenas, old[i].key) = old[i];
    sys_unmap(old, slots * sizeof *old);
    return true;
}

// The arena that has the block still; NULL: it was cleared since.
static struct heap_arena *arena_of(const struct arenas *arenas, const struct arena_block *block) {
    struct heap_arena *arena = arena_find(arenas, block->arena);
    return arena && arena->life == block->life ? arena : NULL;
}

// Blocks of arenas that were cleared are left out; with many of them the table stays as it is.
static bool grow_blocks(struct arenas *arenas) {
    struct arena_block *old = arenas->blocks;
    uint64_t slots = arenas->block_slots, kept = 0;
    for (uint64_t i = 0; i < slots; i++) kept += old[i].key && arena_of(arenas, &old[i]);
    uint64_t wanted = kept > slots / 2 ? 2 * slots : slots;
    struct arena_block *blocks = sys_map(wanted * sizeof *blocks);
    if (!blocks) return false;
    arenas->blocks = blocks;
    arenas->block_slots = wanted;
    arenas->blocks_used = kept;
    for (uint64_t i = 0; i < slots; i++)
        if (old[i].key && arena_of(arenas, &old[i])) *block_place(arenas, old[i].key) = old[i];
    sys_unmap(old, slots * sizeof *old);
    return true;
}

// Closes the gap that a taken entry leaves: entries behind it that may lie there move up.
static void close_list_gap(struct arenas *arenas, uint64_t gap) {
    const uint64_t mask = arenas->list_slots - 1;
    for (uint64_t at = (gap + 1) & mask; arenas->list[at].key; at = (at + 1) & mask) {
        uint64_t home = home_of(arenas->list[at].key, arenas->list_slots);
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        arenas->list[gap] = arenas->list[at];
        gap = at;
    }
    arenas->list[gap].key = 0;
}

static void close_block_gap(struct arenas *arenas, uint64_t gap) {
    const uint64_t mask = arenas->block_slots - 1;
    for (uint64_t at = (gap + 1) & mask; arenas->blocks[at].key; at = (at + 1) & mask) {
        uint64_t home = home_of(arenas->blocks[at].key, arenas->block_slots);
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        arenas->blocks[gap] = arenas->blocks[at];
        gap = at;
    }
    arenas->blocks[gap].key = 0;
}

static void leave_parent(const struct arenas *arenas, const struct heap_arena *arena) {
    struct heap_arena *parent = arena_find(arenas, arena->parent);
    if (parent && parent != arena && parent->children) parent->children--;
}

static void set_parent(const struct arenas *arenas, struct heap_arena *arena, uintptr_t parent) {
    leave_parent(arenas, arena);
    arena->parent = parent ? ~(uint64_t)parent : 0;
    struct heap_arena *there = arena_find(arenas, arena->parent);
    if (there && there != arena) there->children++;
}

static struct heap_arena *arena_make(struct arenas *arenas, uint64_t key, uint32_t scope) {
    if (!key || (is_full(arenas->list_used, arenas->list_slots) && !grow_list(arenas))) return NULL;
    struct heap_arena *arena = arena_place(arenas, key);
    *arena = (struct heap_arena){
        .key = key, .life = arenas->lives++, .scope = scope ? scope : arenas->scope};
    arenas->list_used++;
    __atomic_fetch_add(&scope_at(arena->scope)->entries, 1, __ATOMIC_RELAXED);
    return arena;
}

// A parent that was not seen when it was made: it counts its children from the first one on. This
// may move all others.
static void know_parent(struct arenas *arenas, uintptr_t handle, uintptr_t parent) {
    uint64_t key = ~(uint64_t)parent;
    if (parent && parent != handle && !arena_find(arenas, key)) arena_make(arenas, key, 0);
}

static void give_back_all(struct arenas *arenas, struct heap_arena *arena) {
    pool_count_frees(arena->scope, arena->count, arena->bytes);
    arena->count = arena->bytes = 0;
    arena->life = arenas->lives++;
}

static void drop(struct arenas *arenas, struct heap_arena *arena) {
    give_back_all(arenas, arena);
    leave_parent(arenas, arena);
    __atomic_fetch_add(&scope_at(arena->scope)->ended, 1, __ATOMIC_RELAXED);
    arenas->list_used--;
    close_list_gap(arenas, (uint64_t)(arena - arenas->list));
}

// Whether it lies within the arena, at any depth. A made-up ring of parents has an end.
static bool is_within(const struct arenas *arenas, const struct heap_arena *arena, uint64_t key) {
    enum { DEPTH_MAX = 64 };
    for (int depth = 0; arena && depth < DEPTH_MAX; depth++) {
        if (arena->parent == key) return true;
        arena = arena_find(arenas, arena->parent);
    }
    return false;
}

// Taking one out moves others: what was moved to its place is looked at, too, and what came round
// from the end of the table to its start, by going over it again.
static void drop_children(struct arenas *arenas, uint64_t key) {
    bool has_any = true;
    while (has_any) {
        has_any = false;
        for (uint64_t i = 0; i < arenas->list_slots; i++) {
            struct heap_arena *arena = &arenas->list[i];
            // those without children first, so that the way up stays known
            if (!arena->key || arena->key == key || arena->children ||
                !is_within(arenas, arena, key))
                continue;
            drop(arenas, arena);
            has_any = true;
        }
    }
}

void arena_open(struct arenas *arenas, uintptr_t handle, uintptr_t parent, uint32_t scope) {
    uint64_t key = ~(uint64_t)handle;
    if (!handle || !take_lock(arenas)) return;
    struct heap_arena *old = arena_find(arenas, key);
    if (old) {  // its end was not seen: the address came again
        drop_children(arenas, key);
        drop(arenas, arena_find(arenas, key));
    }
    know_parent(arenas, handle, parent);
    struct heap_arena *arena = arena_make(arenas, key, scope);
    if (arena && parent != handle) set_parent(arenas, arena, parent);
    lock_give_back(&arenas->lock);
}

void arena_name(struct arenas *arenas, uintptr_t handle, uint32_t scope) {
    if (!handle || !scope || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_find(arenas, ~(uint64_t)handle);
    if (!arena) arena = arena_make(arenas, ~(uint64_t)handle, scope);
    if (arena && arena->scope != scope) {
        struct cairn_scope *from = scope_at(arena->scope), *to = scope_at(scope);
        __atomic_fetch_sub(&from->entries, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&from->allocations, arena->count, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&from->allocated_bytes, arena->bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&to->entries, 1, __ATOMIC_RELAXED);
        arena->scope = scope;
        pool_count_allocs(scope, arena->count, arena->bytes);
    }
    lock_give_back(&arenas->lock);
}

void arena_move(struct arenas *arenas, uintptr_t handle, uintptr_t parent) {
    if (!handle || !take_lock(arenas)) return;
    know_parent(arenas, handle, parent);
    struct heap_arena *arena = arena_find(arenas, ~(uint64_t)handle);
    if (arena && parent != handle) set_parent(arenas, arena, parent);
    lock_give_back(&arenas->lock);
}

void arena_clear(struct arenas *arenas, uintptr_t handle, bool is_over) {
    uint64_t key = ~(uint64_t)handle;
    if (!handle || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_find(arenas, key);
    if (arena && arena->children) drop_children(arenas, key);
    arena = arena_find(arenas, key);
    if (arena && is_over)
        drop(arenas, arena);
    else if (arena)
        give_back_all(arenas, arena);
    lock_give_back(&arenas->lock);
}

static void take_out(const struct arena_block *block, struct heap_arena *arena) {
    pool_count_frees(arena->scope, 1, block->bytes);
    arena->count--;
    arena->bytes -= block->bytes;
}

void arena_add(struct arenas *arenas, uintptr_t handle, const void *block, size_t bytes) {
    uint64_t key = ~(uint64_t)handle, block_key = ~(uint64_t)(uintptr_t)block;
    if (!handle || !block || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_find(arenas, key);
    if (!arena) arena = arena_make(arenas, key, 0);
    bool has_room = !is_full(arenas->blocks_used, arenas->block_slots) || grow_blocks(arenas);
    if (arena && has_room) {
        struct arena_block *place = block_place(arenas, block_key);
        struct heap_arena *before = place->key ? arena_of(arenas, place) : NULL;
        if (before) take_out(place, before);  // given back unseen
        arenas->blocks_used += !place->key;
        *place = (struct arena_block){block_key, bytes, key, arena->life};
        arena->count++;
        arena->bytes += bytes;
        pool_count_allocs(arena->scope, 1, bytes);
    } else {
        gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
    }
    lock_give_back(&arenas->lock);
}

bool arena_take(struct arenas *arenas, const void *block, size_t *bytes, uintptr_t *handle) {
    if (!block || !take_lock(arenas)) return false;
    struct arena_block *place = block_place(arenas, ~(uint64_t)(uintptr_t)block);
    struct heap_arena *arena = place->key ? arena_of(arenas, place) : NULL;
    if (arena) {
        *bytes = place->bytes;
        *handle = (uintptr_t)~arena->key;
        take_out(place, arena);
    }
    if (place->key) {
        arenas->blocks_used--;
        close_block_gap(arenas, (uint64_t)(place - arenas->blocks));
    }
    lock_give_back(&arenas->lock);
    return arena != NULL;
}
