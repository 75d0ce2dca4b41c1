// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/caches.h"

#include <stdlib.h>
#include <string.h>

enum {
    BINS_MAX = 128,
    SMALL_BINS_LEAST = 36,  // of either quantum
    BLOCKS_MAX = 1 << 12,
    SEARCHED_BYTES = 64 << 10,
    WORD = sizeof(uint64_t),
};

// A size class of a cache of 5.3 (struct cache_bin_s). The places are the low 16 bits of addresses.
struct new_bin {
    uint64_t head;  // address of the first block's; the others follow
    uint64_t requests;
    uint16_t low_water, full, empty;
    uint16_t unused;
};
_Static_assert(sizeof(struct new_bin) == 24, "layout");

// The same of 5.2.
struct old_bin {
    int32_t low_water, count;
    uint64_t requests;
    uint64_t end;  // address behind the last block's
};
_Static_assert(sizeof(struct old_bin) == 24, "layout");

enum { BIN_WORDS = 3 };

// Either, as places of the table: of the whole stack, and of its blocks, which are the last of it.
// `start` is 0 where it is not known.
struct bin {
    uint64_t start, first, end;
};

static bool read_new(const uint64_t *words, struct bin *bin) {
    struct new_bin new;
    memcpy(&new, words, sizeof new);
    const uint16_t room = (uint16_t)(new.empty - new.full);
    const uint16_t used = (uint16_t)(new.empty - (uint16_t) new.head);
    const uint16_t least = (uint16_t)(new.empty - new.low_water);
    *bin = (struct bin){new.head + used - room, new.head, new.head + used};
    return new.head &&new.head % WORD == 0 && room &&room % WORD == 0 &&
           room / WORD <= BLOCKS_MAX &&used <= room &&least <= room &&used % WORD == 0;
}

static bool read_old(const uint64_t *words, struct bin *bin) {
    struct old_bin old;
    memcpy(&old, words, sizeof old);
    *bin = (struct bin){0, old.end - (uint64_t)(uint32_t)old.count * WORD, old.end};
    return old.end > BLOCKS_MAX * WORD && old.end % WORD == 0 && old.count >= 0 &&
           old.count <= BLOCKS_MAX && old.low_water >= -1 && old.low_water <= BLOCKS_MAX;
}

static bool read_bin(enum jemalloc_version version, const uint64_t *words, struct bin *bin) {
    return version == JEMALLOC_5_2 ? read_old(words, bin) : read_new(words, bin);
}

// Says whether a stack follows the one before in the table, without a gap.
static bool follows(const struct bin *before, struct bin *bin) {
    if (!bin->start && bin->end > before->end && bin->end - before->end <= BLOCKS_MAX * WORD)
        bin->start = before->end;
    return bin->start == before->end && bin->first >= bin->start;
}

// Reads the bins that follow one another in one table; returns how many there are.
static size_t read_bins(enum jemalloc_version version, const uint64_t *words, size_t word_count,
                        struct bin *bins, size_t most) {
    size_t count = 0;
    while (count < most && (count + 1) * BIN_WORDS <= word_count &&
           read_bin(version, &words[count * BIN_WORDS], &bins[count]) &&
           (!count || follows(&bins[count - 1], &bins[count])))
        count++;
    return count;
}

// Adds the bins of large classes of 5.2, which lie a little behind those of small ones.
static size_t read_large(const uint64_t *words, size_t word_count, struct bin *bins, size_t count) {
    enum { BETWEEN_MAX = 64 };
    for (size_t i = 0; i < BETWEEN_MAX && i + BIN_WORDS <= word_count; i++) {
        if (!read_old(&words[i], &bins[count]) || !follows(&bins[count - 1], &bins[count]))
            continue;
        do count++;
        while (count < BINS_MAX && (i += BIN_WORDS) + BIN_WORDS <= word_count &&
               read_old(&words[i], &bins[count]) && follows(&bins[count - 1], &bins[count]));
        break;
    }
    return count;
}

static bool add_blocks(const struct memory_reader *memory, const struct bin *bin,
                       struct jemalloc_caches *caches) {
    const size_t count = (bin->end - bin->first) / WORD;
    uint64_t words[BLOCKS_MAX];
    if (!count || !memory_read(memory, bin->first, words, count * WORD)) return true;
    for (size_t i = 0; i < count; i++) {
        uint64_t *slot = array_push(&caches->blocks);
        if (!slot) return false;
        *slot = words[i];
    }
    return true;
}

static bool add_cache(const struct memory_reader *memory, const struct bin *bins, size_t count,
                      struct jemalloc_caches *caches) {
    const uint64_t start = bins[0].start ? bins[0].start : bins[0].end - WORD;
    bool is_ok = spans_add(&caches->tables, start, bins[count - 1].end);
    for (size_t i = 0; i < count && is_ok; i++) is_ok = add_blocks(memory, &bins[i], caches);
    return is_ok;
}

bool jemalloc_cache_read(const struct memory_reader *memory, uint64_t pointer, uint64_t start,
                         struct jemalloc_caches *caches, bool *is_out_of_memory) {
    uint64_t words[SEARCHED_BYTES / WORD];
    if (pointer % WORD || pointer < SEARCHED_BYTES) return false;
    if (start < pointer - SEARCHED_BYTES) start = pointer - SEARCHED_BYTES;
    const size_t count = (pointer - start) / WORD;
    if (!memory_read(memory, start, words, count * WORD)) return false;
    for (size_t i = 0; i + SMALL_BINS_LEAST * BIN_WORDS <= count; i++) {
        struct bin bins[BINS_MAX];
        size_t found = words[i] || caches->version == JEMALLOC_5_2
                           ? read_bins(caches->version, &words[i], count - i, bins, BINS_MAX)
                           : 0;
        if (found < SMALL_BINS_LEAST) continue;
        if (caches->version == JEMALLOC_5_2 && found < BINS_MAX)
            found = read_large(&words[i + found * BIN_WORDS], count - i - found * BIN_WORDS, bins,
                               found);
        caches->distance = pointer - (start + i * WORD);
        *is_out_of_memory = !add_cache(memory, bins, found, caches);
        return !*is_out_of_memory;
    }
    return false;
}

bool jemalloc_cache_is_absent(const struct memory_reader *memory, uint64_t pointer,
                              const struct jemalloc_caches *caches) {
    static const uint64_t none[SMALL_BINS_LEAST * BIN_WORDS];
    uint64_t words[SMALL_BINS_LEAST * BIN_WORDS];
    return caches->distance &&
           memory_read(memory, pointer - caches->distance, words, sizeof words) &&
           !memcmp(words, none, sizeof words);
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
