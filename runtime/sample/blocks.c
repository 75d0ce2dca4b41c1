// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/blocks.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "format/sample.h"

// Entries a row; a row's keys fill a cache line. At the most samples a quarter of all is in use,
// two entries a row: that 16 places of a block are all taken does not happen.
enum { ROW_ENTRIES = 8, SPARE_FACTOR = 4, LEAST_ROWS = 128 };

// How often somebody gives way to a party that has an entry at work.
enum { WAIT_TRIES = 200 };

_Static_assert(sizeof(struct sampled) == sizeof(struct cairn_live_sample) &&
                   offsetof(struct sampled, rate_bytes) ==
                       offsetof(struct cairn_live_sample, rate_bytes) &&
                   offsetof(struct sampled, cell) == offsetof(struct cairn_live_sample, cell),
               "as readers know it");

static uint64_t *keys;  // (atomic) ROW_ENTRIES a row
static struct sampled *entries;
static uint64_t row_count;   // a power of two
static uint64_t live_count;  // (atomic)
static struct cairn_live_samples told;
APART uint8_t blocks_filter[1 << FILTER_BITS];

bool blocks_init(uint64_t max_samples) {
    uint64_t wanted = max_samples * SPARE_FACTOR / ROW_ENTRIES, count = LEAST_ROWS;
    while (count < wanted) count *= 2;
    if (keys) return true;
    entries = sys_reserve(count * ROW_ENTRIES * sizeof *entries);
    keys = entries ? sys_reserve(count * ROW_ENTRIES * sizeof *keys) : NULL;
    sys_let_dump(entries, count * ROW_ENTRIES * sizeof *entries);
    sys_let_dump(keys, count * ROW_ENTRIES * sizeof *keys);
    row_count = count;
    told = (struct cairn_live_samples){(uintptr_t)keys, (uintptr_t)entries,
                                       keys ? count * ROW_ENTRIES : 0};
    return keys != NULL;
}

void blocks_release(void) {
    if (!keys) return;
    told = (struct cairn_live_samples){0};
    sys_release(entries, row_count * ROW_ENTRIES * sizeof *entries);
    sys_release(keys, row_count * ROW_ENTRIES * sizeof *keys);
    keys = NULL;
}

uintptr_t blocks_place(void) {
    return (uintptr_t)&told;
}

uint64_t blocks_capacity(void) {
    return row_count * ROW_ENTRIES;
}

uint64_t blocks_touched_bytes(void) {
    uint64_t key_bytes = blocks_capacity() * sizeof *keys;
    uint64_t entry_bytes = blocks_capacity() * sizeof *entries;
    if (!keys) return 0;
    return key_bytes - sys_untouched_bytes(keys, key_bytes) + entry_bytes -
           sys_untouched_bytes(entries, entry_bytes);
}

uint64_t blocks_count(void) {
    return __atomic_load_n(&live_count, __ATOMIC_RELAXED);
}

static uint64_t key_of(const void *block) {
    return ~(uint64_t)(uintptr_t)block;
}

// The first entry of the row that is a block's first or second place.
static uint64_t row_of(uint64_t key, int place) {
    static const uint64_t factors[2] = {0xD1342543DE82EF95u, 0xF1357AEA2E62A9C5u};
    return ((key >> 3) * factors[place] >> 32 & (row_count - 1)) * ROW_ENTRIES;
}

static void filter_change(const void *block, int by) {
    uint8_t *counter = &blocks_filter[filter_place(block)];
    uint8_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);
    do {
        if (old == UINT8_MAX || (old == 0 && by < 0)) return;
    } while (!__atomic_compare_exchange_n(counter, &old, (uint8_t)(old + by), true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

// The highest value is never changed again.
void blocks_suspect(const void *block) {
    __atomic_store_n(&blocks_filter[filter_place(block)], UINT8_MAX, __ATOMIC_RELAXED);
}

static bool key_exchange(uint64_t *key, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(key, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool blocks_insert(const void *block, const struct sampled *sampled) {
    uint64_t key = key_of(block), working = key & ~1ull;
    for (int place = 0; place < 2; place++) {
        uint64_t row = row_of(key, place);
        for (uint64_t i = 0; i < ROW_ENTRIES; i++) {
            uint64_t *slot = &keys[row + i];
            if (__atomic_load_n(slot, __ATOMIC_RELAXED) || !key_exchange(slot, 0, working))
                continue;
            entries[row + i] = *sampled;
            filter_change(block, 1);
            __atomic_fetch_add(&live_count, 1, __ATOMIC_RELAXED);
            __atomic_store_n(slot, key, __ATOMIC_RELEASE);
            return true;
        }
    }
    return false;
}

// The key's entry, now at work for the caller; NULL: it is not there.
static uint64_t *entry_seize(uint64_t key) {
    for (int place = 0; place < 2; place++) {
        uint64_t *row = &keys[row_of(key, place)];
        for (int i = 0; i < ROW_ENTRIES; i++) {
            uint64_t seen = __atomic_load_n(&row[i], __ATOMIC_RELAXED);
            for (int tries = 0; (seen | 1) == key && tries < WAIT_TRIES; tries++) {
                if (key_exchange(&row[i], key, key & ~1ull)) return &row[i];
                if (!sys_is_confined()) sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
                seen = __atomic_load_n(&row[i], __ATOMIC_RELAXED);
            }
            if ((seen | 1) == key) return &row[i];  // nobody is there any more
        }
    }
    return NULL;
}

static void entry_clear(uint64_t *slot, const void *block) {
    filter_change(block, -1);
    __atomic_fetch_sub(&live_count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
}

bool blocks_take(const void *block, struct sampled *sampled) {
    if (!block || !keys || !blocks_may_have(block)) return false;
    uint64_t *slot = entry_seize(key_of(block));
    if (!slot) return false;
    *sampled = entries[slot - keys];
    entry_clear(slot, block);
    return true;
}

void blocks_each(blocks_visit *visit, void *context) {
    for (uint64_t i = 0; i < blocks_capacity(); i++) {
        uint64_t key = __atomic_load_n(&keys[i], __ATOMIC_RELAXED);
        if (!(key & 1) || !key_exchange(&keys[i], key, key & ~1ull)) continue;
        const void *block = (const void *)(uintptr_t)~key;
        if (visit(context, block, &entries[i]) == BLOCKS_KEEP)
            __atomic_store_n(&keys[i], key, __ATOMIC_RELEASE);
        else
            entry_clear(&keys[i], block);
    }
}

void blocks_recover(void) {
    for (uint64_t i = 0; keys && i < blocks_capacity(); i++) {
        if (!keys[i] || keys[i] & 1) continue;
        keys[i] = 0;
        live_count--;
    }
}
