// SPDX-License-Identifier: Apache-2.0
#include "tool/core/glibc_lists.h"

enum {
    WORD = 8,
    HEADER = 2 * WORD,
    FASTBINS = 10,
    CACHE_BINS = 64,
    CHAIN_MAX = 1 << 20,
    PROTECT_SHIFT = 12,
};

// Two forms of a thread's cache: counts of 2 bytes (since 2.30) or 1.
struct cache_form {
    uint64_t usable_bytes;  // of its block
    unsigned count_bytes;
};
static const struct cache_form cache_forms[] = {{0x288, 2}, {0x248, 1}};

static struct core_chunk *find_chunk(const struct core_heap *heap, uint64_t address) {
    const struct core_chunk *chunk = core_chunk_of(heap, address);
    bool is_found = chunk && chunk->address == address;
    return is_found ? &heap->chunks.items[chunk - heap->chunks.items] : NULL;
}

// The block behind the link that lies in `address`: the word as it is, or XORed. 0: the end, or
// nothing that makes sense. Heaps are far from the addresses that a XORed end looks like.
static uint64_t follow(const struct core_image *core, const struct core_heap *heap,
                       uint64_t address, uint64_t bias) {
    uint64_t word;
    if (!core_read(core, address, &word, sizeof word)) return 0;
    uint64_t plain = word + bias, hidden = (word ^ address >> PROTECT_SHIFT) + bias;
    if (word && find_chunk(heap, plain)) return plain;
    return hidden != bias && find_chunk(heap, hidden) ? hidden : 0;
}

static void mark(const struct core_heap *heap, uint64_t address, enum chunk_kind kind) {
    struct core_chunk *chunk = find_chunk(heap, address);
    if (chunk && chunk->kind == CHUNK_USED) chunk->kind = kind;
}

void glibc_mark_fast(const struct core_image *core, struct core_heap *heap, uint64_t fastbins) {
    uint64_t heads[FASTBINS];
    if (!core_read(core, fastbins, heads, sizeof heads)) return;
    for (unsigned i = 0; i < FASTBINS; i++) {
        // fastbins link chunks, whose blocks begin behind a header
        uint64_t block = heads[i] ? heads[i] + HEADER : 0;
        for (unsigned step = 0; block && step < CHAIN_MAX; step++) {
            const struct core_chunk *chunk = find_chunk(heap, block);
            if (!chunk || chunk->kind != CHUNK_USED) break;
            mark(heap, block, CHUNK_FAST);
            block = follow(core, heap, block, HEADER);
        }
    }
}

// How many blocks the list has, at most `most` + 1.
static uint64_t chain_length(const struct core_image *core, const struct core_heap *heap,
                             uint64_t block, uint64_t most) {
    uint64_t length = 0;
    for (; block && length <= most && find_chunk(heap, block); length++)
        block = follow(core, heap, block, 0);
    return length;
}

struct cache {
    uint64_t counts[CACHE_BINS], heads[CACHE_BINS];
};

static bool read_cache(const struct core_image *core, const struct cache_form *form,
                       uint64_t address, struct cache *cache) {
    uint8_t counts[2 * CACHE_BINS];
    size_t bytes = (size_t)form->count_bytes * CACHE_BINS;
    if (!core_read(core, address, counts, bytes) ||
        !core_read(core, address + bytes, cache->heads, sizeof cache->heads))
        return false;
    for (unsigned i = 0; i < CACHE_BINS; i++)
        cache->counts[i] =
            form->count_bytes == 1 ? counts[i] : counts[2 * i] | (uint64_t)counts[2 * i + 1] << 8;
    return true;
}

// A thread that was stopped between changing a list and counting it leaves one that is one off;
// that is believed where other lists bear it out.
static bool is_cache(const struct core_image *core, const struct core_heap *heap,
                     const struct cache *cache) {
    unsigned right = 0, wrong = 0;
    for (unsigned i = 0; i < CACHE_BINS; i++) {
        uint64_t count = cache->counts[i], head = cache->heads[i];
        uint64_t length = chain_length(core, heap, head, count + 1);
        if (head && !length) return false;
        if (length == count) {
            right += count > 0;
            continue;
        }
        if (length + 1 != count && length != count + 1) return false;
        wrong++;
    }
    return !wrong || (wrong == 1 && right > 0);
}

static void mark_cache(const struct core_image *core, struct core_heap *heap,
                       const struct cache *cache) {
    for (unsigned i = 0; i < CACHE_BINS; i++) {
        uint64_t block = cache->heads[i];
        for (uint64_t left = cache->counts[i] + 1; left && block; left--) {
            mark(heap, block, CHUNK_CACHED);
            block = follow(core, heap, block, 0);
        }
    }
}

void glibc_mark_cached(const struct core_image *core, struct core_heap *heap) {
    struct cache cache;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct core_chunk *chunk = &heap->chunks.items[i];
        if (chunk->kind != CHUNK_USED) continue;
        for (size_t k = 0; k < sizeof cache_forms / sizeof *cache_forms; k++)
            if (chunk->size == cache_forms[k].usable_bytes &&
                read_cache(core, &cache_forms[k], chunk->address, &cache) &&
                is_cache(core, heap, &cache))
                mark_cache(core, heap, &cache);
    }
}
