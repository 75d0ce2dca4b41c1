// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; taking out moves later entries up, so that no marks stay.
#include "runtime/api/pool.h"

#include "runtime/stack/hash.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/lock.h"
#include "runtime/thread/gate.h"

struct pool_block {
    uint64_t key;  // ~address; 0: empty
    uint64_t bytes;
};

struct pool {
    uint32_t scope;
    struct lock lock;  // holder: address of its thread-locals
    struct pool_block *table;
    uint64_t slots, used;  // a power of two; at most three quarters are used
    uint64_t live_bytes;
};

enum { FIRST_SLOTS = 256 };

static bool pool_lock(struct pool *pool) {
    if (lock_take(&pool->lock, (uintptr_t)&gate_self)) return true;
    gate_count_loss(CAIRN_LOST_NESTED);
    return false;
}

static void pool_unlock(struct pool *pool) {
    lock_give_back(&pool->lock);
}

struct pool *pool_make(const char *name) {
    uint32_t scope = scope_of_name(CAIRN_SCOPE_POOL, 0, name);
    struct pool *pool = scope ? sys_map(sizeof *pool) : NULL;
    if (!pool) return NULL;
    *pool = (struct pool){.scope = scope, .slots = FIRST_SLOTS};
    pool->table = sys_map(FIRST_SLOTS * sizeof *pool->table);
    if (pool->table) {
        __atomic_fetch_add(&scope_at(scope)->entries, 1, __ATOMIC_RELAXED);
        return pool;
    }
    sys_unmap(pool, sizeof *pool);
    return NULL;
}

static uint64_t home_of(const struct pool *pool, uint64_t key) {
    return hash_mix(key, HASH_FACTOR) & (pool->slots - 1);
}

// Where the key is, or the empty place where it belongs.
static struct pool_block *place_of(const struct pool *pool, uint64_t key) {
    uint64_t at = home_of(pool, key);
    while (pool->table[at].key && pool->table[at].key != key) at = (at + 1) & (pool->slots - 1);
    return &pool->table[at];
}

static bool pool_grow(struct pool *pool) {
    struct pool old = *pool;
    struct pool_block *table = sys_map(2 * old.slots * sizeof *table);
    if (!table) return false;
    pool->table = table;
    pool->slots = 2 * old.slots;
    for (uint64_t i = 0; i < old.slots; i++)
        if (old.table[i].key) *place_of(pool, old.table[i].key) = old.table[i];
    sys_unmap(old.table, old.slots * sizeof *old.table);
    return true;
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

// Puts a block into the table. False without memory.
static bool enter_block(struct pool *pool, const void *block, size_t bytes) {
    const uint64_t used_parts = 3, all_parts = 4;
    if ((pool->used + 1) * all_parts > pool->slots * used_parts && !pool_grow(pool)) {
        gate_count_loss(CAIRN_LOST_NO_LIVE_MAP);
        return false;
    }
    struct pool_block *place = place_of(pool, ~(uint64_t)(uintptr_t)block);
    if (place->key) {
        count_frees(pool, 1, place->bytes);  // given back unseen: its address came again
        pool->used--;
    }
    *place = (struct pool_block){~(uint64_t)(uintptr_t)block, bytes};
    pool->used++;
    return true;
}

void pool_add(struct pool *pool, const void *block, size_t bytes) {
    if (!block || !pool_lock(pool)) return;
    if (enter_block(pool, block, bytes)) count_alloc(pool, bytes);
    pool_unlock(pool);
}

void pool_put_back(struct pool *pool, const void *block, size_t bytes) {
    struct cairn_scope *scope = scope_at(pool->scope);
    if (!block || !pool_lock(pool)) return;
    if (enter_block(pool, block, bytes)) {
        __atomic_fetch_sub(&scope->frees, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&scope->freed_bytes, bytes, __ATOMIC_RELAXED);
        pool->live_bytes += bytes;
    }
    pool_unlock(pool);
}

// Closes the gap: entries behind it that may lie there move up.
static void close_gap(struct pool *pool, uint64_t gap) {
    const uint64_t mask = pool->slots - 1;
    for (uint64_t at = (gap + 1) & mask; pool->table[at].key; at = (at + 1) & mask) {
        uint64_t home = home_of(pool, pool->table[at].key);
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        pool->table[gap] = pool->table[at];
        gap = at;
    }
    pool->table[gap].key = 0;
}

bool pool_take(struct pool *pool, const void *block, size_t *bytes) {
    if (!block || !pool_lock(pool)) return false;
    struct pool_block *place = place_of(pool, ~(uint64_t)(uintptr_t)block);
    bool is_there = place->key != 0;
    if (is_there) {
        if (bytes) *bytes = place->bytes;
        count_frees(pool, 1, place->bytes);
        pool->used--;
        close_gap(pool, (uint64_t)(place - pool->table));
    }
    pool_unlock(pool);
    return is_there;
}

void pool_end(struct pool *pool) {
    count_frees(pool, pool->used, pool->live_bytes);
    __atomic_fetch_add(&scope_at(pool->scope)->ended, 1, __ATOMIC_RELAXED);
    sys_unmap(pool->table, pool->slots * sizeof *pool->table);
    sys_unmap(pool, sizeof *pool);
}
