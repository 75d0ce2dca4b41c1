// SPDX-License-Identifier: Apache-2.0
// Arenas know those that lie in them, by their keys: entries of the table move.
#include "runtime/api/arena.h"

#include "runtime/api/addresses.h"
#include "runtime/api/pool.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/lock.h"
#include "runtime/thread/gate.h"

// The others are keys, too; 0: none.
struct heap_arena {
    uint64_t key, parent, child, next, previous;
    uint64_t life;  // another one after each time that it was cleared
    uint64_t count, bytes;
    uint32_t scope;
};
struct arena_block {
    uint64_t key, bytes;
    uint64_t arena, life;
};

struct arenas {
    struct lock lock;
    uint32_t scope;
    uint64_t lives;
    struct addresses list, blocks;
};

struct arenas *arenas_make(uint32_t scope) {
    struct arenas *arenas = sys_map(sizeof *arenas);
    if (!arenas) return NULL;
    arenas->scope = scope;
    arenas->lives = 1;
    bool is_open = addresses_open(&arenas->list, sizeof(struct heap_arena)) &&
                   addresses_open(&arenas->blocks, sizeof(struct arena_block));
    return is_open ? arenas : NULL;
}

static bool take_lock(struct arenas *arenas) {
    if (lock_take(&arenas->lock, (uintptr_t)&gate_self)) return true;
    gate_count_loss(CAIRN_LOST_NESTED);
    return false;
}

static struct heap_arena *arena_find(const struct arenas *arenas, uint64_t key) {
    return addresses_find(&arenas->list, key);
}

// The arena that has the block still; NULL: it was cleared since.
static struct heap_arena *arena_of(const struct arenas *arenas, const struct arena_block *block) {
    struct heap_arena *arena = arena_find(arenas, block->arena);
    return arena && arena->life == block->life ? arena : NULL;
}

static bool is_block_kept(void *context, const void *entry) {
    return arena_of(context, entry) != NULL;
}

static void leave_parent(const struct arenas *arenas, struct heap_arena *arena) {
    struct heap_arena *parent = arena_find(arenas, arena->parent);
    struct heap_arena *next = arena_find(arenas, arena->next);
    struct heap_arena *previous = arena_find(arenas, arena->previous);
    if (previous)
        previous->next = arena->next;
    else if (parent)
        parent->child = arena->next;
    if (next) next->previous = arena->previous;
    arena->parent = arena->next = arena->previous = 0;
}

static void set_parent(const struct arenas *arenas, struct heap_arena *arena, uintptr_t handle) {
    struct heap_arena *parent = handle ? arena_find(arenas, addresses_key(handle)) : NULL;
    leave_parent(arenas, arena);
    if (!parent || parent == arena) return;
    struct heap_arena *next = arena_find(arenas, parent->child);
    if (next) next->previous = arena->key;
    arena->next = parent->child;
    arena->parent = parent->key;
    parent->child = arena->key;
}

static struct heap_arena *arena_make(struct arenas *arenas, uint64_t key, uint32_t scope) {
    struct heap_arena *arena = addresses_add(&arenas->list, key, NULL, NULL);
    if (!arena) return NULL;
    arena->life = arenas->lives++;
    arena->scope = scope ? scope : arenas->scope;
    __atomic_fetch_add(&scope_at(arena->scope)->entries, 1, __ATOMIC_RELAXED);
    return arena;
}

// A parent that was not seen when it was made: it counts its children from the first one on. This
// may move all others.
static void know_parent(struct arenas *arenas, uintptr_t handle, uintptr_t parent) {
    uint64_t key = addresses_key(parent);
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
    addresses_drop(&arenas->list, arena);
}

// Those without children first, and then up again. A made-up ring of parents comes back to where it
// began, which leaves its parent then.
static void drop_children(struct arenas *arenas, uint64_t key) {
    uint64_t at = key;
    for (struct heap_arena *arena; (arena = arena_find(arenas, at));) {
        uint64_t parent = arena->parent;
        if (arena->child == key) {
            leave_parent(arenas, arena_find(arenas, key));
        } else if (arena->child) {
            at = arena->child;
        } else if (at != key) {
            drop(arenas, arena);
            at = parent;
        } else {
            return;
        }
    }
}

void arena_open(struct arenas *arenas, uintptr_t handle, uintptr_t parent, uint32_t scope) {
    uint64_t key = addresses_key(handle);
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
    struct heap_arena *arena = arena_find(arenas, addresses_key(handle));
    if (!arena) arena = arena_make(arenas, addresses_key(handle), scope);
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
    struct heap_arena *arena = arena_find(arenas, addresses_key(handle));
    if (arena && parent != handle) set_parent(arenas, arena, parent);
    lock_give_back(&arenas->lock);
}

void arena_clear(struct arenas *arenas, uintptr_t handle, bool is_over) {
    uint64_t key = addresses_key(handle);
    if (!handle || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_find(arenas, key);
    if (arena) drop_children(arenas, key);
    arena = arena_find(arenas, key);  // it may have moved
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
    uint64_t key = addresses_key(handle), block_key = addresses_key((uintptr_t)block);
    if (!handle || !block || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_find(arenas, key);
    if (!arena) arena = arena_make(arenas, key, 0);
    struct arena_block *entry =
        arena ? addresses_add(&arenas->blocks, block_key, is_block_kept, arenas) : NULL;
    if (entry) {
        struct heap_arena *before = arena_of(arenas, entry);
        if (before) take_out(entry, before);  // given back unseen
        *entry = (struct arena_block){block_key, bytes, key, arena->life};
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
    struct arena_block *entry = addresses_find(&arenas->blocks, addresses_key((uintptr_t)block));
    struct heap_arena *arena = entry ? arena_of(arenas, entry) : NULL;
    if (arena) {
        *bytes = entry->bytes;
        *handle = (uintptr_t)~arena->key;
        take_out(entry, arena);
    }
    if (entry) addresses_drop(&arenas->blocks, entry);
    lock_give_back(&arenas->lock);
    return arena != NULL;
}
