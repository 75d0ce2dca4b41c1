// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/caches.h"

#include <stdlib.h>
#include <string.h>

#include "tool/jemalloc/extents.h"

enum { BINS_MAX = 128, BLOCKS_MAX = 1 << 12, SEARCHED_BYTES = 64 << 10, WORD = sizeof(uint64_t) };

// A size class of a cache (struct cache_bin_s). The places are the low 16 bits of addresses.
struct bin {
    uint64_t head;  // address of the first block's; the others follow
    uint64_t requests;
    uint16_t low_water, full, empty;
    uint16_t unused;
};
_Static_assert(sizeof(struct bin) == 24, "layout");

static uint64_t end_of(const struct bin *bin) {
    return bin->head + (uint16_t)(bin->empty - (uint16_t)bin->head);
}

static uint64_t start_of(const struct bin *bin) {
    return end_of(bin) - (uint16_t)(bin->empty - bin->full);
}

static bool is_bin(const struct bin *bin) {
    const uint16_t room = (uint16_t)(bin->empty - bin->full);
    const uint16_t used = (uint16_t)(bin->empty - (uint16_t)bin->head);
    const uint16_t least = (uint16_t)(bin->empty - bin->low_water);
    return bin->head && bin->head % WORD == 0 && room && room % WORD == 0 &&
           room / WORD <= BLOCKS_MAX && used <= room && least <= room && used % WORD == 0;
}

// Counts the bins that follow one another in one table.
static size_t count_bins(const struct bin *bins, size_t most) {
    size_t count = 0;
    if (most > BINS_MAX) most = BINS_MAX;
    while (count < most && is_bin(&bins[count]) &&
           (!count || end_of(&bins[count - 1]) == start_of(&bins[count])))
        count++;
    return count;
}

static bool add_blocks(const struct memory_reader *memory, const struct bin *bin,
                       struct jemalloc_caches *caches) {
    const size_t count = (end_of(bin) - bin->head) / WORD;
    uint64_t words[BLOCKS_MAX];
    if (!count || !memory_read(memory, bin->head, words, count * WORD)) return true;
    for (size_t i = 0; i < count; i++) {
        uint64_t *slot = array_push(&caches->blocks);
        if (!slot) return false;
        *slot = words[i];
    }
    return true;
}

static bool add_cache(const struct memory_reader *memory, const struct bin *bins, size_t count,
                      struct jemalloc_caches *caches) {
    bool is_ok = spans_add(&caches->tables, start_of(&bins[0]), end_of(&bins[count - 1]));
    for (size_t i = 0; i < count && is_ok; i++) is_ok = add_blocks(memory, &bins[i], caches);
    return is_ok;
}

bool jemalloc_cache_read(const struct memory_reader *memory, uint64_t pointer, uint64_t start,
                         struct jemalloc_caches *caches, bool *is_out_of_memory) {
    uint64_t words[SEARCHED_BYTES / WORD];
    if (pointer % WORD || pointer < SEARCHED_BYTES) return false;
    if (start < pointer - SEARCHED_BYTES) start = pointer - SEARCHED_BYTES;
    const size_t count = (pointer - start) / WORD, bin_words = sizeof(struct bin) / WORD;
    if (!memory_read(memory, start, words, count * WORD)) return false;
    for (size_t i = 0; i + JEMALLOC_SMALL_CLASSES * bin_words <= count; i++) {
        struct bin bins[BINS_MAX];
        const size_t room = (count - i) / bin_words;
        if (!words[i]) continue;
        memcpy(bins, &words[i], sizeof *bins);
        if (!is_bin(&bins[0])) continue;
        memcpy(bins, &words[i], (room < BINS_MAX ? room : BINS_MAX) * sizeof *bins);
        const size_t found = count_bins(bins, room);
        if (found < JEMALLOC_SMALL_CLASSES) continue;
        caches->distance = pointer - (start + i * WORD);
        *is_out_of_memory = !add_cache(memory, bins, found, caches);
        return !*is_out_of_memory;
    }
    return false;
}

bool jemalloc_cache_is_absent(const struct memory_reader *memory, uint64_t pointer,
                              const struct jemalloc_caches *caches) {
    static const struct bin none[JEMALLOC_SMALL_CLASSES];
    struct bin bins[JEMALLOC_SMALL_CLASSES];
    return caches->distance && memory_read(memory, pointer - caches->distance, bins, sizeof bins) &&
           !memcmp(bins, none, sizeof bins);
}

static int compare(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

void jemalloc_caches_settle(struct jemalloc_caches *caches) {
    spans_settle(&caches->tables);
    if (caches->blocks.count)
        qsort(caches->blocks.items, caches->blocks.count, sizeof *caches->blocks.items, compare);
}

void jemalloc_caches_free(struct jemalloc_caches *caches) {
    array_free(&caches->blocks);
    spans_free(&caches->tables);
}
