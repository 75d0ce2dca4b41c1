// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/pool.h"

#include "runtime/api/addresses.h"
#include "runtime/api/heap_stacks.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/lock.h"
#include "runtime/thread/gate.h"

struct pool_block {
    uint64_t key, bytes;
    uint32_t stack;
    struct birth birth;
};

struct pool {
    struct pool *next, **place;  // in the list; place: what leads to it
    uint32_t scope;
    struct lock lock;  // holder: address of its thread-locals
    struct addresses blocks;
    struct heap_stacks stacks;
    bool has_stacks;
    uint64_t live_bytes;
};

// Whoever goes along `next` finds a list at any instant: a forked child may find any.
static struct {
    struct lock lock;  // holder: as of a pool
    struct pool *first;
} list;

static bool take_lock(struct lock *lock) {
    if (lock_take(lock, (uintptr_t)&gate_self)) return true;
    gate_count_loss(CAIRN_LOST_NESTED);
    return false;
}

static bool pool_lock(struct pool *pool) {
    return take_lock(&pool->lock);
}

static void pool_unlock(struct pool *pool) {
    lock_give_back(&pool->lock);
}

static bool list_add(struct pool *pool) {
    if (!take_lock(&list.lock)) return false;
    pool->next = list.first;
    pool->place = &list.first;
    if (pool->next) pool->next->place = &pool->next;
    __atomic_store_n(&list.first, pool, __ATOMIC_RELEASE);
    lock_give_back(&list.lock);
    return true;
}

static bool list_remove(struct pool *pool) {
    if (!take_lock(&list.lock)) return false;
    __atomic_store_n(pool->place, pool->next, __ATOMIC_RELEASE);
    if (pool->next) pool->next->place = pool->place;
    lock_give_back(&list.lock);
    return true;
}

struct pool *pool_make(const char *name) {
    uint32_t scope = scope_of_name(CAIRN_SCOPE_POOL, 0, name);
    struct pool *pool = scope ? sys_map(sizeof *pool) : NULL;
    if (!pool) return NULL;
    pool->scope = scope;
    if (addresses_open(&pool->blocks, sizeof(struct pool_block)) && list_add(pool)) {
        __atomic_fetch_add(&scope_at(scope)->entries, 1, __ATOMIC_RELAXED);
        return pool;
    }
    addresses_close(&pool->blocks);
    sys_unmap(pool, sizeof *pool);
    return NULL;
}

struct pool *pool_make_heap(const char *name) {
    struct pool *pool = pool_make(name);
    if (pool) pool->has_stacks = heap_stacks_open(&pool->stacks, pool->scope);
    return pool;
}

void pool_count_allocs(uint32_t number, uint64_t count, uint64_t bytes) {
    struct cairn_scope *scope = scope_at(number);
    __atomic_fetch_add(&scope->allocations, count, __ATOMIC_RELAXED);
    uint64_t all = __atomic_add_fetch(&scope->allocated_bytes, bytes, __ATOMIC_RELAXED);
    int64_t live_bytes = (int64_t)(all - __atomic_load_n(&scope->freed_bytes, __ATOMIC_RELAXED));
    int64_t peak = __atomic_load_n(&scope->peak_bytes, __ATOMIC_RELAXED);
    while (live_bytes > peak &&
           !__atomic_compare_exchange_n(&scope->peak_bytes, &peak, live_bytes, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void pool_count_frees(uint32_t number, uint64_t count, uint64_t bytes) {
    struct cairn_scope *scope = scope_at(number);
    __atomic_fetch_add(&scope->frees, count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&scope->freed_bytes, bytes, __ATOMIC_RELAXED);
}

static void count_alloc(struct pool *pool, uint64_t bytes) {
    pool_count_allocs(pool->scope, 1, bytes);
    pool->live_bytes += bytes;
}

static void count_frees(struct pool *pool, uint64_t count, uint64_t bytes) {
    pool_count_frees(pool->scope, count, bytes);
    pool->live_bytes -= bytes;
}

// Puts a block into the table; NULL without memory.
static struct pool_block *enter_block(struct pool *pool, const void *block, size_t bytes) {
    uint64_t used = pool->blocks.used;
    struct pool_block *entry = addresses_add(&pool->blocks, addresses_key((uintptr_t)block));
    if (!entry) {
        gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
        return NULL;
    }
    if (pool->blocks.used == used) {  // given back unseen: its address came again
        count_frees(pool, 1, entry->bytes);
        heap_stacks_free(&pool->stacks, entry->stack, entry->bytes, entry->birth);
    }
    entry->bytes = bytes;
    return entry;
}

void pool_add(struct pool *pool, const void *block, size_t bytes, uint32_t cell) {
    if (!block || !pool_lock(pool)) return;
    struct pool_block *entry = enter_block(pool, block, bytes);
    if (entry) {
        entry->stack = pool->has_stacks ? heap_stacks_find(&pool->stacks, cell, pool->scope) : 0;
        entry->birth = heap_stacks_alloc(&pool->stacks, entry->stack, bytes);
        count_alloc(pool, bytes);
    }
    pool_unlock(pool);
}

void pool_put_back(struct pool *pool, const void *block, const struct heap_block *taken) {
    struct cairn_scope *scope = scope_at(pool->scope);
    if (!block || !pool_lock(pool)) return;
    struct pool_block *entry = enter_block(pool, block, taken->bytes);
    if (entry) {
        entry->stack = taken->stack;
        entry->birth = taken->birth;
        heap_stacks_put_back(&pool->stacks, taken->stack, taken->bytes, taken->birth);
        __atomic_fetch_sub(&scope->frees, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&scope->freed_bytes, taken->bytes, __ATOMIC_RELAXED);
        pool->live_bytes += taken->bytes;
    }
    pool_unlock(pool);
}

bool pool_take(struct pool *pool, const void *block, struct heap_block *taken) {
    if (!block || !pool_lock(pool)) return false;
    struct pool_block *entry = addresses_find(&pool->blocks, addresses_key((uintptr_t)block));
    bool is_there = entry != NULL;
    if (is_there) {
        if (taken) *taken = (struct heap_block){entry->bytes, entry->stack, 0, entry->birth};
        count_frees(pool, 1, entry->bytes);
        heap_stacks_free(&pool->stacks, entry->stack, entry->bytes, entry->birth);
        addresses_drop(&pool->blocks, entry);
    }
    pool_unlock(pool);
    return is_there;
}

void pool_end(struct pool *pool) {
    count_frees(pool, pool->blocks.used, pool->live_bytes);
    __atomic_fetch_add(&scope_at(pool->scope)->ended, 1, __ATOMIC_RELAXED);
    addresses_close(&pool->blocks);
    pool->blocks = (struct addresses){0};
    pool->live_bytes = 0;
    if (list_remove(pool)) sys_unmap(pool, sizeof *pool);  // else it stays in it, and is empty
}

static void pool_inherit(struct pool *pool) {
    if (!heap_stacks_inherit_heap(&pool->stacks, &pool->lock)) addresses_renew(&pool->blocks);
    pool->live_bytes = 0;
    __atomic_fetch_add(&scope_at(pool->scope)->entries, 1, __ATOMIC_RELAXED);
    for (struct pool_block *block = NULL; (block = addresses_next(&pool->blocks, block));) {
        heap_stacks_inherit_block(&pool->stacks, block->stack, block->bytes);
        count_alloc(pool, block->bytes);
    }
}

void pools_inherit(void) {
    struct pool **place = &list.first;
    if (list.lock.holder != (uintptr_t)&gate_self) list.lock = (struct lock){0};
    for (; *place; place = &(*place)->next) {
        (*place)->place = place;
        pool_inherit(*place);
    }
}
