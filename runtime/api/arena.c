// SPDX-License-Identifier: Apache-2.0
// Arenas know those that lie in them, and their blocks, by their keys: entries of tables move.
#include "runtime/api/arena.h"

#include "runtime/api/addresses.h"
#include "runtime/api/heap_stacks.h"
#include "runtime/api/pool.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/lock.h"
#include "runtime/thread/gate.h"

// The others are keys, too; 0: none.
struct heap_arena {
    uint64_t key, parent, child, next, previous;
    uint64_t blocks;  // the first
    uint64_t count, bytes;
    uint32_t scope;
};
struct arena_block {
    uint64_t key, bytes;
    uint64_t arena, next, previous;
    uint32_t stack;
    struct birth birth;
};

struct arenas {
    struct lock lock;
    struct arenas *next;  // in the list of all heaps, none of which ends
    uint32_t scope;
    struct addresses list, blocks;
    struct heap_stacks stacks;
};

static struct arenas *all;  // (atomic)

static void list_add(struct arenas *arenas) {
    arenas->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&all, &arenas->next, arenas, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

struct arenas *arenas_make(uint32_t scope) {
    struct arenas *arenas = sys_map(sizeof *arenas);
    if (!arenas) return NULL;
    arenas->scope = scope;
    bool is_open = addresses_open(&arenas->list, sizeof(struct heap_arena)) &&
                   addresses_open(&arenas->blocks, sizeof(struct arena_block)) &&
                   heap_stacks_open(&arenas->stacks, scope);
    if (is_open) list_add(arenas);
    if (is_open) return arenas;
    addresses_close(&arenas->blocks);
    addresses_close(&arenas->list);
    sys_unmap(arenas, sizeof *arenas);
    return NULL;
}

static bool take_lock(struct arenas *arenas) {
    if (lock_take(&arenas->lock, (uintptr_t)&gate_self)) return true;
    gate_count_loss(CAIRN_LOST_NESTED);
    return false;
}

static struct heap_arena *arena_find(const struct arenas *arenas, uint64_t key) {
    return addresses_find(&arenas->list, key);
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
    struct heap_arena *arena = addresses_add(&arenas->list, key);
    if (!arena) return NULL;
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

static struct arena_block *block_find(const struct arenas *arenas, uint64_t key) {
    return addresses_find(&arenas->blocks, key);
}

static void take_out(struct arenas *arenas, struct arena_block *block) {
    struct heap_arena *arena = arena_find(arenas, block->arena);
    struct arena_block *next = block_find(arenas, block->next);
    struct arena_block *previous = block_find(arenas, block->previous);
    if (previous)
        previous->next = block->next;
    else
        arena->blocks = block->next;
    if (next) next->previous = block->previous;
    arena->count--;
    arena->bytes -= block->bytes;
    pool_count_frees(arena->scope, 1, block->bytes);
    heap_stacks_free(&arenas->stacks, block->stack, block->bytes, block->birth);
    addresses_drop(&arenas->blocks, block);
}

static void give_back_all(struct arenas *arenas, const struct heap_arena *arena) {
    for (struct arena_block *block; (block = block_find(arenas, arena->blocks));)
        take_out(arenas, block);
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

static void move_stacks(struct arenas *arenas, const struct heap_arena *arena) {
    struct arena_block *block = block_find(arenas, arena->blocks);
    for (; block; block = block_find(arenas, block->next))
        block->stack = heap_stacks_move(&arenas->stacks, block->stack, arena->scope, block->bytes);
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
        move_stacks(arenas, arena);
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

// Puts a block in front of those of its arena.
static void link_block(const struct arenas *arenas, struct heap_arena *arena,
                       struct arena_block *block) {
    struct arena_block *next = block_find(arenas, arena->blocks);
    if (next) next->previous = block->key;
    block->next = arena->blocks;
    block->previous = 0;
    arena->blocks = block->key;
    arena->count++;
    arena->bytes += block->bytes;
}

static struct arena_block *enter_block(struct arenas *arenas, struct heap_arena *arena,
                                       const void *address, size_t bytes, uint32_t stack) {
    uint64_t key = addresses_key((uintptr_t)address);
    struct arena_block *block = arena ? block_find(arenas, key) : NULL;
    if (block) take_out(arenas, block);  // given back unseen
    block = arena ? addresses_add(&arenas->blocks, key) : NULL;
    if (!block) {
        gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
        return NULL;
    }
    *block = (struct arena_block){.key = key, .bytes = bytes, .arena = arena->key, .stack = stack};
    link_block(arenas, arena, block);
    pool_count_allocs(arena->scope, 1, bytes);
    return block;
}

static struct heap_arena *arena_known(struct arenas *arenas, uintptr_t handle) {
    struct heap_arena *arena = arena_find(arenas, addresses_key(handle));
    return arena ? arena : arena_make(arenas, addresses_key(handle), 0);
}

void arena_add(struct arenas *arenas, uintptr_t handle, const void *address, size_t bytes,
               uint32_t cell) {
    if (!handle || !address || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_known(arenas, handle);
    uint32_t stack = arena ? heap_stacks_find(&arenas->stacks, cell, arena->scope) : 0;
    struct arena_block *block = enter_block(arenas, arena, address, bytes, stack);
    if (block) block->birth = heap_stacks_alloc(&arenas->stacks, stack, bytes);
    lock_give_back(&arenas->lock);
}

void arena_put_back(struct arenas *arenas, const void *address, const struct heap_block *taken) {
    if (!taken->arena || !address || !take_lock(arenas)) return;
    struct heap_arena *arena = arena_known(arenas, taken->arena);
    struct arena_block *block = enter_block(arenas, arena, address, taken->bytes, taken->stack);
    if (block) {
        block->birth = taken->birth;
        heap_stacks_put_back(&arenas->stacks, taken->stack, taken->bytes, taken->birth);
    }
    lock_give_back(&arenas->lock);
}

bool arena_take(struct arenas *arenas, const void *address, struct heap_block *taken) {
    if (!address || !take_lock(arenas)) return false;
    struct arena_block *block = block_find(arenas, addresses_key((uintptr_t)address));
    bool is_there = block != NULL;
    if (is_there) {
        *taken =
            (struct heap_block){block->bytes, block->stack, (uintptr_t)~block->arena, block->birth};
        take_out(arenas, block);
    }
    lock_give_back(&arenas->lock);
    return is_there;
}

// Returns a block that was half entered, without its arena or its stack; NULL: there is none.
static struct arena_block *find_stray(const struct arenas *arenas) {
    struct arena_block *block = NULL;
    while ((block = addresses_next(&arenas->blocks, block)) && block->stack &&
           arena_find(arenas, block->arena)) {
    }
    return block;
}

// Links arenas and blocks anew, by what each says of itself.
static void link_anew(struct arenas *arenas) {
    addresses_renew(&arenas->list);
    addresses_renew(&arenas->blocks);
    for (struct arena_block *block; (block = find_stray(arenas));)
        addresses_drop(&arenas->blocks, block);
    for (struct heap_arena *arena = NULL; (arena = addresses_next(&arenas->list, arena));)
        arena->child = arena->next = arena->previous = arena->blocks = arena->count = arena->bytes =
            0;
    for (struct heap_arena *arena = NULL; (arena = addresses_next(&arenas->list, arena));) {
        const uintptr_t parent = (uintptr_t)~arena->parent;
        arena->parent = 0;
        set_parent(arenas, arena, parent);
    }
    for (struct arena_block *block = NULL; (block = addresses_next(&arenas->blocks, block));)
        link_block(arenas, arena_find(arenas, block->arena), block);
}

// Arenas and blocks are looked at alone: how they are linked may be half changed by the thread that
// forked, if a signal handler did.
static void count_all(struct arenas *arenas) {
    for (struct heap_arena *arena = NULL; (arena = addresses_next(&arenas->list, arena));)
        __atomic_fetch_add(&scope_at(arena->scope)->entries, 1, __ATOMIC_RELAXED);
    for (struct arena_block *block = NULL; (block = addresses_next(&arenas->blocks, block));) {
        const struct heap_arena *arena = arena_find(arenas, block->arena);
        if (!arena) continue;
        pool_count_allocs(arena->scope, 1, block->bytes);
        heap_stacks_inherit_block(&arenas->stacks, block->stack, block->bytes);
    }
}

void arenas_inherit(void) {
    for (struct arenas *arenas = all; arenas; arenas = arenas->next) {
        if (!heap_stacks_inherit_heap(&arenas->stacks, &arenas->lock)) link_anew(arenas);
        count_all(arenas);
    }
}
