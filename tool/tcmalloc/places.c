// SPDX-License-Identifier: Apache-2.0
#include "tool/tcmalloc/places.h"

#include <stddef.h>
#include <string.h>

enum {
    PIECE_WORDS = 8192,
    WORD = sizeof(uint64_t),
    LEAF_BITS = 18,
    SIZE_SHIFT = 32,  // of the second of two sizes in a word
    CLASSES_LEAST = 32,
    SIZE_LEAST = 8,
    SIZE_SECOND = 16,
};
#define SIZE_MOST (UINT64_C(256) << 10)
#define ROOT_BYTES ((UINT64_C(1) << 17) * WORD)
#define ADDRESS_MOST (UINT64_C(1) << 47)

struct search {
    const struct memory_reader *memory;
    struct tcmalloc_places *places;
    uint64_t start, end;  // of the data that is searched
    uint64_t known_span;  // of a block's page: what a leaf leads to
    struct tcmalloc_span span;
};

// Goes through the words of the data that are not 0 until `is_it` holds for one.
static bool find_word(struct search *search,
                      bool (*is_it)(struct search *search, uint64_t address, uint64_t word)) {
    uint64_t words[PIECE_WORDS];
    for (uint64_t at = search->start; at < search->end; at += sizeof words) {
        size_t bytes = search->end - at < sizeof words ? search->end - at : sizeof words;
        if (!memory_read(search->memory, at, words, bytes)) continue;
        for (size_t i = 0; i < bytes / WORD; i++)
            if (words[i] && is_it(search, at + i * WORD, words[i])) return true;
    }
    return false;
}

// The lists of all classes: those after the first word that is 1, the number of the second class.
static bool is_lists(struct search *search, uint64_t address, uint64_t word) {
    const uint64_t step = sizeof(struct tcmalloc_lists);
    const uint64_t first = address - step - offsetof(struct tcmalloc_lists, size_class);
    uint64_t number;
    if (word != 1) return false;
    for (unsigned i = 0; i < CLASSES_LEAST; i++)
        if (!memory_read_word(search->memory,
                              first + i * step + offsetof(struct tcmalloc_lists, size_class),
                              &number) ||
            number != i)
            return false;
    search->places->lists = first;
    return true;
}

// The sizes: 8, 16, then ascending to the largest, which the count behind them is the number of. In
// front of them is that of the first class, 0, at an odd multiple of 4.
static bool is_sizes(struct search *search, uint64_t address, uint64_t word) {
    struct {
        int32_t sizes[TCMALLOC_CLASSES_MAX];  // from the second class on; the last word is none
        uint64_t pages[TCMALLOC_CLASSES_MAX];
        uint64_t
            counts[2];  // of later releases the second; the first is that of a span's least pages
    } map;
    struct tcmalloc_places *places = search->places;
    if (word != (SIZE_LEAST | (uint64_t)SIZE_SECOND << SIZE_SHIFT) ||
        !memory_read(search->memory, address, &map, sizeof map))
        return false;
    const uint64_t count = map.counts[map.counts[0] < CLASSES_LEAST];
    if (count < CLASSES_LEAST || count > TCMALLOC_CLASSES_MAX || map.sizes[count - 2] != SIZE_MOST)
        return false;
    for (unsigned i = 1; i < count; i++) {
        const uint64_t size = (uint64_t)map.sizes[i - 1];
        if ((i > 1 && map.sizes[i - 1] <= map.sizes[i - 2]) || !map.pages[i] ||
            map.pages[i] * TCMALLOC_PAGE_BYTES < size || map.pages[i] > SIZE_MOST)
            return false;
        places->sizes[i] = size;
        places->span_pages[i] = map.pages[i];
    }
    places->class_count = (unsigned)count;
    return true;
}

// Finds a span of small blocks, in the ring of any class.
static bool find_span(struct search *search) {
    const struct tcmalloc_places *places = search->places;
    struct tcmalloc_lists lists;
    for (unsigned i = 1; i < places->class_count; i++) {
        const uint64_t at = places->lists + i * sizeof lists;
        if (!memory_read(search->memory, at, &lists, sizeof lists)) return false;
        const uint64_t full = at + offsetof(struct tcmalloc_lists, full);
        search->known_span = lists.full.next == full ? lists.partial.next : lists.full.next;
        if (lists.span_count &&
            memory_read(search->memory, search->known_span, &search->span, sizeof search->span) &&
            search->span.size_class == i && search->span.length == places->span_pages[i])
            return true;
    }
    return false;
}

// The word of the root that leads to the leaf in which that span is.
static bool is_root(struct search *search, uint64_t address, uint64_t word) {
    const uint64_t page = search->span.start, top = page >> LEAF_BITS;
    const uint64_t number = page & ((UINT64_C(1) << LEAF_BITS) - 1);
    uint64_t found;
    if (word % WORD || word > ADDRESS_MOST || address < top * WORD + search->start ||
        address - top * WORD + ROOT_BYTES > search->end ||
        !memory_read_word(search->memory, word + number * WORD, &found) ||
        found != search->known_span)
        return false;
    search->places->root = address - top * WORD;
    return true;
}

bool tcmalloc_cache_read(const struct memory_reader *memory, const struct tcmalloc_places *places,
                         uint64_t address, struct tcmalloc_cache *cache) {
    if (!memory_read(memory, address, cache, sizeof *cache)) return false;
    for (unsigned i = 1; i < places->class_count; i++)
        if (cache->lists[i].size != places->sizes[i]) return false;
    return true;
}

// True if a neighbour of a cache is none, or is one and leads back by that word.
static bool leads_back(const struct search *search, uint64_t cache, uint64_t neighbour,
                       unsigned place) {
    struct tcmalloc_cache other;
    return !neighbour || (tcmalloc_cache_read(search->memory, search->places, neighbour, &other) &&
                          other.others[place] == cache);
}

// Finds the words that link caches: later releases have them two words earlier.
static bool find_links(struct search *search, uint64_t address,
                       const struct tcmalloc_cache *cache) {
    enum { LATER = 4, EARLIER = 6 };
    for (unsigned next = LATER; next <= EARLIER; next += EARLIER - LATER) {
        if (!leads_back(search, address, cache->others[next], next + 1) ||
            !leads_back(search, address, cache->others[next + 1], next))
            continue;
        search->places->next_place = next;
        search->places->previous_place = next + 1;
        return true;
    }
    return false;
}

static bool is_cache(struct search *search, uint64_t address, uint64_t word) {
    const struct tcmalloc_places *places = search->places;
    struct tcmalloc_cache cache;
    uint64_t size;
    (void)address;
    if (word % WORD || word > ADDRESS_MOST ||
        !memory_read_word(search->memory, word + offsetof(struct tcmalloc_cache, lists[1].size),
                          &size) ||
        (uint32_t)size != places->sizes[1] ||
        !tcmalloc_cache_read(search->memory, places, word, &cache) ||
        !find_links(search, word, &cache))
        return false;
    search->places->cache = word;
    return true;
}

bool tcmalloc_find_places(const struct memory_reader *memory, const struct spans *data,
                          struct tcmalloc_places *places) {
    for (size_t i = 0; i < data->items.count; i++) {
        struct search search = {.memory = memory,
                                .places = places,
                                .start = data->items.items[i].start,
                                .end = data->items.items[i].end};
        *places = (struct tcmalloc_places){0};
        if (search.end - search.start < ROOT_BYTES || !find_word(&search, is_lists) ||
            !find_word(&search, is_sizes) || !find_span(&search) || !find_word(&search, is_root))
            continue;
        find_word(&search, is_cache);
        return true;
    }
    return false;
}
