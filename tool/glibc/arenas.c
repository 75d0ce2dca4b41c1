// SPDX-License-Identifier: Apache-2.0
#include "tool/glibc/arenas.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORD = 8,
    BIN_BYTES = 2 * WORD,
    // from the first bin, in words
    FASTBINS = -12,
    TOP = -2,
    NEXT = ARENA_BIN_WORDS + 2,
    THREADS_OR_SYSTEM = ARENA_BIN_WORDS + 4,
    END = ARENA_BIN_WORDS + 7,
    // what is read of an arena: from TOP on
    READ_WORDS = END - TOP,
    THREADS_MAX = 1 << 16,  // what the arena took from the system is more
    ARENAS_MAX = 4096,
    PAGE_LEAST = 4096,  // larger pages are multiples of it
};
static const uint64_t data_bytes_max = 4ull << 20;
// From an arena's start to its first bin: since 2.26, and before.
static const uint64_t bins_offsets[] = {14 * (uint64_t)WORD, 13 * (uint64_t)WORD};

static bool is_empty(const uint64_t *words, uint64_t address, unsigned bin) {
    const uint64_t head = address + (uint64_t)bin * BIN_BYTES - BIN_BYTES;
    return words[2 * bin] == head && words[2 * bin + 1] == head;
}

// Whether the words at `address` can be bins; where those that are not empty lead is checked later.
// The last one is of no size and so always empty; all others may have something.
static bool are_bins(const uint64_t *words, uint64_t address) {
    if (!is_empty(words, address, ARENA_BINS - 1)) return false;
    for (unsigned bin = 0; bin < ARENA_BINS - 1; bin++)
        if (!is_empty(words, address, bin) && (!words[2 * bin] || words[2 * bin] % WORD))
            return false;
    return true;
}

// First and last chunk of each bin lead back to it. This is checked before chunks are followed:
// words a bin or two off look like bins too, and their circles have no end.
static bool are_circles(const struct memory_reader *memory, const struct arena *arena,
                        unsigned broken_most) {
    unsigned broken = 0;
    for (unsigned bin = 0; bin < ARENA_BINS; bin++) {
        const uint64_t *words = &arena->bins[2 * (size_t)bin];
        uint64_t head = arena_bin_head(arena, bin), back, forward;
        if (words[0] == head) continue;
        if (!memory_read_word(memory, words[0] + 3 * (uint64_t)WORD, &back) ||
            !memory_read_word(memory, words[1] + 2 * (uint64_t)WORD, &forward) || back != head ||
            forward != head)
            broken++;
        if (broken > broken_most) return false;
    }
    return true;
}

bool arenas_read(const struct arenas *arenas, const struct memory_reader *memory, uint64_t address,
                 unsigned broken_most, struct arena *arena) {
    uint64_t words[READ_WORDS];
    const uint64_t *bins = words - TOP, bins_address = address + arenas->bins_offset;
    if (!memory_read(memory, bins_address + TOP * WORD, words, sizeof words) ||
        !are_bins(bins, bins_address))
        return false;
    bool has_threads = bins[THREADS_OR_SYSTEM] < THREADS_MAX;
    *arena = (struct arena){.address = address,
                            .bins_address = bins_address,
                            .fastbins_address = bins_address + FASTBINS * WORD,
                            .end = bins_address + END * WORD,
                            .top = bins[TOP],
                            .next = bins[NEXT],
                            .system_bytes = bins[THREADS_OR_SYSTEM + has_threads]};
    memcpy(arena->bins, bins, sizeof arena->bins);
    return are_circles(memory, arena, broken_most);
}

static bool is_known(const struct arenas *arenas, uint64_t address) {
    for (size_t i = 0; i < arenas->addresses.count; i++)
        if (arenas->addresses.items[i] == address) return true;
    return false;
}

// Follows the circle of arenas from one that is believed to be the first.
static bool follow(struct arenas *arenas, const struct memory_reader *memory, uint64_t first,
                   unsigned broken_most) {
    struct arena arena;
    arenas->addresses.count = 0;
    for (uint64_t at = first; arenas->addresses.count < ARENAS_MAX;) {
        if (is_known(arenas, at) || !arenas_read(arenas, memory, at, broken_most, &arena))
            return false;
        uint64_t *slot = array_push(&arenas->addresses);
        if (!slot) return false;
        *slot = at;
        at = arena.next;
        if (at == first) return true;
    }
    return false;
}

// Words that look like bins may be a bin or two off: the circle of arenas has to close.
static bool follow_bins(struct arenas *arenas, const struct memory_reader *memory, uint64_t bins,
                        unsigned broken_most) {
    for (size_t i = 0; i < sizeof bins_offsets / sizeof *bins_offsets; i++) {
        arenas->bins_offset = bins_offsets[i];
        if (follow(arenas, memory, bins - bins_offsets[i], broken_most)) return true;
    }
    return false;
}

bool arenas_find(struct arenas *arenas, const struct memory_reader *memory, uint64_t start,
                 uint64_t end, unsigned broken_most) {
    size_t count = (size_t)((end - start) / WORD);
    if (end - start > data_bytes_max || count < ARENA_BIN_WORDS) return false;
    uint64_t *words = malloc(count * WORD);
    bool is_found = false, is_read = words && memory_read(memory, start, words, count * WORD);
    for (size_t i = 0; is_read && !is_found && i + ARENA_BIN_WORDS <= count; i++) {
        uint64_t address = start + i * WORD;
        is_found =
            are_bins(words + i, address) && follow_bins(arenas, memory, address, broken_most);
    }
    free(words);
    return is_found;
}

bool arenas_find_again(struct arenas *arenas, const struct memory_reader *memory,
                       unsigned broken_most) {
    return arenas->addresses.count &&
           follow(arenas, memory, arenas->addresses.items[0], broken_most);
}

void arenas_free(struct arenas *arenas) {
    array_free(&arenas->addresses);
}

bool arena_heap_is_valid(const struct arena_heap *heap, uint64_t start, uint64_t end) {
    uint64_t arena_at = heap->arena % ARENA_HEAP_BYTES, accessible = heap->accessible_bytes;
    bool has_arena =
        arena_at >= sizeof *heap && arena_at < PAGE_LEAST && arena_at % (2 * WORD) == 0;
    bool is_first = heap->arena - arena_at == start;
    bool is_linked = heap->previous % ARENA_HEAP_BYTES == 0 && heap->previous != start &&
                     is_first == !heap->previous;
    return start % ARENA_HEAP_BYTES == 0 && has_arena && is_linked && heap->bytes &&
           heap->bytes % PAGE_LEAST == 0 && heap->bytes <= accessible &&
           accessible <= ARENA_HEAP_BYTES && accessible % PAGE_LEAST == 0 &&
           accessible <= end - start;
}
