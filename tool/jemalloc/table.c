// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/table.h"

#include <string.h>

enum {
    WORD = sizeof(uint64_t),
    PIECE_WORDS = 8192,
    GIB_SHIFT = 30,
    // two levels
    LEVEL_BITS = 18,
    // three
    WIDE_BITS = 15,
    TOP_SHIFT = 2 * WIDE_BITS + JEMALLOC_PAGE_SHIFT,
    TOPS = 1 << (47 - TOP_SHIFT),  // that addresses of programs have
};
#define LEVEL_WORDS (UINT64_C(1) << LEVEL_BITS)
#define LEVEL_BYTES (LEVEL_WORDS * WORD)
#define WIDE_WORDS (UINT64_C(1) << WIDE_BITS)
#define WIDE_BYTES (WIDE_WORDS * WORD)

bool jemalloc_place_add_memory(struct jemalloc_place *place, uint64_t start, uint64_t end) {
    return start >= end ||
           spans_add(&place->gigabytes, start >> GIB_SHIFT, ((end - 1) >> GIB_SHIFT) + 1);
}

void jemalloc_place_settle(struct jemalloc_place *place) {
    spans_settle(&place->data);
    spans_settle(&place->gigabytes);
}

void jemalloc_place_free(struct jemalloc_place *place) {
    spans_free(&place->data);
    spans_free(&place->gigabytes);
}

// Words in order, as many at a time as fit, but for those that are 0; `see` returns false to end
// it.
static bool each_word(const struct memory_reader *memory, uint64_t start, uint64_t end,
                      bool (*see)(void *context, uint64_t address, uint64_t word), void *context) {
    uint64_t words[PIECE_WORDS];
    for (uint64_t at = start; at < end; at += sizeof words) {
        size_t bytes = end - at < sizeof words ? end - at : sizeof words;
        if (!memory_read(memory, at, words, bytes)) continue;
        for (size_t i = 0; i < bytes / WORD; i++)
            if (words[i] && !see(context, at + i * WORD, words[i])) return false;
    }
    return true;
}

struct first_word {
    uint64_t address, word;
    unsigned step;  // of words that may lead to something: 2 in a leaf of pairs
};

// Passes over words that lead to no record: an extent that was joined to the one before left such a
// word, which comes first if that one began in the leaf before. Parts begin at multiples of pairs.
static bool keep_first(void *context, uint64_t address, uint64_t word) {
    struct first_word *first = context;
    if (!jemalloc_word_record(JEMALLOC_5_2, word) || address / WORD % first->step) return true;
    first->address = address;
    first->word = word;
    return false;
}

enum { LEAF_EMPTY, LEAF_FULL, LEAF_NONE };

#define ANY_TOP UINT64_MAX

static bool may_be_part(uint64_t word) {
    enum { ALIGNED = 64 };
    return word % ALIGNED == 0 && word <= JEMALLOC_ADDRESS_MOST && word >= JEMALLOC_PAGE_BYTES;
}

// Finds the first word of a part of the table that leads to something. False: there is no memory,
// as behind most words that lead to no such part. Little is read if the word comes soon; else the
// pieces that are read are taken off `pieces_left`, at whose end it finds none: a program's own
// pointers lead to much empty memory.
static bool find_first_word(const struct memory_reader *memory, uint64_t part, uint64_t bytes,
                            unsigned *pieces_left, struct first_word *first) {
    enum { SOON_WORDS = 64 };
    const uint64_t piece_bytes = PIECE_WORDS * WORD;
    uint64_t soon[SOON_WORDS];
    if (!memory_read(memory, part, soon, sizeof soon)) return false;
    for (size_t i = 0; i < SOON_WORDS; i++)
        if (soon[i] && !keep_first(first, part + i * WORD, soon[i])) return true;
    for (uint64_t at = part; at < part + bytes && *pieces_left && !first->word;
         at += piece_bytes, --*pieces_left)
        each_word(memory, at, at + piece_bytes, keep_first, first);
    return true;
}

struct search {
    const struct memory_reader *memory;
    const struct spans *gigabytes;
    uint64_t start, end;          // of the data that is searched
    struct jemalloc_table table;  // its levels: 0: not found
    unsigned tries_left;          // words of these data that may lead to a part
    unsigned pieces_left;         // that may be read in the search of a part ...
    unsigned root_pieces_left;    // ... and of those that a root has
};

// --- two levels

// Says whether a record is of a place of the root that is `wanted`, or any: then `top` gets it. An
// extent may have begun in a leaf before.
static bool is_record_of(enum jemalloc_version version, const struct jemalloc_record *record,
                         const struct first_word *first, uint64_t leaf, uint64_t wanted,
                         uint64_t *top) {
    enum { PLACES_MOST = 1 << 10 };  // an extent's
    if (!jemalloc_record_may_be(version, record, first->word)) return false;
    const uint64_t number = (first->address - leaf) / WORD;
    const uint64_t begin = record->address >> GIB_SHIFT;
    const uint64_t last = (record->address + record->bytes_and_number) >> GIB_SHIFT;
    for (*top = begin; *top <= last && *top < LEVEL_WORDS && *top - begin < PLACES_MOST; ++*top)
        if ((wanted == ANY_TOP || wanted == *top) &&
            jemalloc_record_is_plausible(version, record, first->word,
                                         (*top << LEVEL_BITS | number) << JEMALLOC_PAGE_SHIFT))
            return true;
    return false;
}

// Says whether a leaf is at that address, of any version.
static int judge_leaf(struct search *search, uint64_t leaf, uint64_t wanted, uint64_t *top,
                      unsigned *pieces_left) {
    struct first_word first = {.step = 1};
    struct jemalloc_record record;
    if (!may_be_part(leaf) ||
        !find_first_word(search->memory, leaf, LEVEL_BYTES, pieces_left, &first))
        return LEAF_NONE;
    if (!first.word) return *pieces_left ? LEAF_EMPTY : LEAF_NONE;
    for (enum jemalloc_version version = 0; version < JEMALLOC_VERSIONS; version++) {
        if (memory_read(search->memory, jemalloc_word_record(version, first.word), &record,
                        sizeof record) &&
            is_record_of(version, &record, &first, leaf, wanted, top))
            return LEAF_FULL;
    }
    return LEAF_NONE;
}

// Every word of a root leads to the leaf of its place.
static bool see_root(void *context, uint64_t address, uint64_t word) {
    struct search *search = context;
    const uint64_t number = (address - search->table.root) / WORD;
    uint64_t top;
    return judge_leaf(search, word, number, &top, &search->root_pieces_left) != LEAF_NONE;
}

// Says whether a word at that address can stand for a gigabyte of memory, in a root that lies
// within the data. Most of the data are not much longer than a root: a program's own pointers are
// rarely where one stands.
static bool may_stand(const struct search *search, uint64_t address) {
    const uint64_t beyond = address + LEVEL_BYTES;
    uint64_t first = beyond > search->end ? (beyond - search->end + 7) / WORD : 0;
    const uint64_t start = first, end = (address - search->start) / WORD + 1;
    struct span gap;
    return start < end && !(spans_gap(search->gigabytes, &first, end, &gap) && gap.start == start &&
                            gap.end == end);
}

// Says whether the words around that address can be those of a root, if the word there is the one
// of that gigabyte: others lead nowhere where there is no memory. An array of a program's pointers
// is none.
static bool fits_around(const struct search *search, const uint64_t *words, size_t count,
                        size_t middle, uint64_t gigabyte) {
    for (size_t i = 0; i < count; i++)
        if (words[i] && !spans_have(search->gigabytes, gigabyte + i - middle)) return false;
    return true;
}

static bool may_be_of_root(const struct search *search, uint64_t address) {
    enum { AROUND = 16 };
    uint64_t words[2 * AROUND];
    const uint64_t before = (address - search->start) / WORD,
                   behind = (search->end - address) / WORD;
    const size_t middle = before < AROUND ? before : AROUND;
    const size_t count = middle + (behind < AROUND ? behind : AROUND);
    if (!memory_read(search->memory, address - middle * WORD, words, count * WORD)) return false;
    for (size_t i = 0; i < search->gigabytes->items.count; i++) {
        const struct span *span = &search->gigabytes->items.items[i];
        if (span->start > before) return false;
        if (span->end - span->start > 2 * AROUND) return true;
        for (uint64_t one = span->start; one < span->end && one <= before; one++)
            if (fits_around(search, words, count, middle, one)) return true;
    }
    return false;
}

// A word may lead to a leaf: that tells which place of the root it has to be. (Caches of threads
// lead to leaves, too.)
static bool try_leaf(void *context, uint64_t address, uint64_t word) {
    struct search *search = context;
    uint64_t top = 0;
    if (!search->pieces_left || !search->tries_left) return false;
    if (!may_be_part(word) || !may_stand(search, address) || !may_be_of_root(search, address))
        return true;
    search->tries_left--;
    if (judge_leaf(search, word, ANY_TOP, &top, &search->pieces_left) != LEAF_FULL ||
        top * WORD > address)
        return true;
    const uint64_t root = address - top * WORD;
    if (root < search->start || root + LEVEL_BYTES > search->end) return true;
    search->table.root = root;
    if (!each_word(search->memory, root, root + LEVEL_BYTES, see_root, search)) return true;
    search->table.levels = 2;
    return false;
}

// --- three levels

// Says whether a leaf of pairs is at that address, the first of which is of its place; `number`: of
// the leaf among all.
static int judge_wide_leaf(struct search *search, uint64_t leaf, uint64_t number,
                           unsigned *pieces_left) {
    struct first_word first = {.step = 2};
    struct jemalloc_record record;
    uint64_t metadata = 0;
    if (!may_be_part(leaf) ||
        !find_first_word(search->memory, leaf, 2 * WIDE_BYTES, pieces_left, &first))
        return LEAF_NONE;
    if (!first.word) return *pieces_left ? LEAF_EMPTY : LEAF_NONE;
    const uint64_t place = (first.address - leaf) / WORD;
    const uint64_t page = (number << WIDE_BITS | place / 2) << JEMALLOC_PAGE_SHIFT;
    if (!memory_read_word(search->memory, first.address + WORD, &metadata) ||
        !memory_read(search->memory, first.word, &record, sizeof record))
        return LEAF_NONE;
    for (enum jemalloc_version version = 0; version < JEMALLOC_VERSIONS; version++) {
        const uint64_t word = jemalloc_word_of(version, first.word, metadata);
        if (jemalloc_record_is_plausible(version, &record, word, page)) return LEAF_FULL;
    }
    return LEAF_NONE;
}

static int judge_node(struct search *search, uint64_t node, uint64_t top, unsigned *pieces_left) {
    struct first_word first = {.step = 1};
    if (!may_be_part(node) ||
        !find_first_word(search->memory, node, WIDE_BYTES, pieces_left, &first))
        return LEAF_NONE;
    if (!first.word) return *pieces_left ? LEAF_EMPTY : LEAF_NONE;
    const uint64_t number = top << WIDE_BITS | (first.address - node) / WORD;
    return judge_wide_leaf(search, first.word, number, pieces_left);
}

static bool has_memory(const struct search *search, uint64_t top) {
    enum { GIB_BITS = TOP_SHIFT - GIB_SHIFT };
    uint64_t first = top << GIB_BITS;
    const uint64_t start = first, end = (top + 1) << GIB_BITS;
    struct span gap;
    return !spans_gap(search->gigabytes, &first, end, &gap) || gap.start != start || gap.end != end;
}

// A root has words for places with memory, each of which leads to a node, and no others; one at
// least has an extent.
static bool is_wide_root(struct search *search, uint64_t root) {
    uint64_t words[2 * TOPS];
    bool is_full = false;
    if (!memory_read(search->memory, root, words, sizeof words)) return false;
    for (uint64_t top = 0; top < 2 * TOPS; top++)
        if (words[top] && (top >= TOPS || !may_be_part(words[top]) || !has_memory(search, top)))
            return false;
    for (uint64_t top = 0; top < TOPS; top++) {
        if (!words[top]) continue;
        const int found = judge_node(search, words[top], top, &search->pieces_left);
        if (found == LEAF_NONE) return false;
        is_full |= found == LEAF_FULL;
    }
    return is_full;
}

static bool try_node(void *context, uint64_t address, uint64_t word) {
    struct search *search = context;
    if (!search->pieces_left || !search->tries_left) return false;
    if (!may_be_part(word)) return true;
    search->tries_left--;
    for (uint64_t top = 0; top < TOPS; top++) {
        const uint64_t root = address - top * WORD;
        if (address < top * WORD || root < search->start || root + WIDE_BYTES > search->end ||
            !has_memory(search, top))
            continue;
        if (!is_wide_root(search, root)) continue;
        search->table.root = root;
        search->table.levels = 3;
        return false;
    }
    return true;
}

// --- both

static void search_all(struct search *search, const struct spans *data, bool is_wide) {
    enum { TRIES_MAX = 1 << 16, PIECES_MAX = 1 << 13, ROOT_PIECES_MAX = 1 << 14 };
    search->pieces_left = PIECES_MAX;
    search->root_pieces_left = ROOT_PIECES_MAX;
    for (size_t i = 0; i < data->items.count && !search->table.levels; i++) {
        search->start = data->items.items[i].start;
        search->end = data->items.items[i].end;
        search->tries_left = TRIES_MAX;
        if (search->end - search->start >= (is_wide ? WIDE_BYTES : LEVEL_BYTES))
            each_word(search->memory, search->start, search->end, is_wide ? try_node : try_leaf,
                      search);
    }
}

struct jemalloc_table jemalloc_table_find(const struct memory_reader *memory,
                                          const struct jemalloc_place *place) {
    struct search search = {.memory = memory, .gigabytes = &place->gigabytes};
    search_all(&search, &place->data, false);
    if (!search.table.levels) search_all(&search, &place->data, true);
    return search.table.levels ? search.table : (struct jemalloc_table){0};
}

struct walk {
    const struct memory_reader *memory;
    const struct jemalloc_table *table;
    const struct jemalloc_table_seen *seen;
    uint64_t part, number;  // the part that is gone through, and its number on its level
};

static bool see_page(void *context, uint64_t address, uint64_t word) {
    struct walk *walk = context;
    const uint64_t page = (walk->number << LEVEL_BITS) + (address - walk->part) / WORD;
    return walk->seen->page(walk->seen->context, page << JEMALLOC_PAGE_SHIFT, word);
}

static bool see_leaf(void *context, uint64_t address, uint64_t leaf) {
    struct walk *walk = context;
    const struct jemalloc_table_seen *seen = walk->seen;
    walk->number = (address - walk->table->root) / WORD;
    walk->part = leaf;
    return seen->part(seen->context, leaf, LEVEL_BYTES) &&
           each_word(walk->memory, leaf, leaf + LEVEL_BYTES, see_page, walk);
}

static bool see_wide_leaf(void *context, uint64_t address, uint64_t leaf) {
    const struct walk *walk = context;
    const struct jemalloc_table_seen *seen = walk->seen;
    const uint64_t number = walk->number << WIDE_BITS | (address - walk->part) / WORD;
    uint64_t pairs[PIECE_WORDS / 2][2];
    if (!seen->part(seen->context, leaf, 2 * WIDE_BYTES)) return false;
    for (uint64_t first = 0; first < WIDE_WORDS; first += PIECE_WORDS / 2) {
        if (!memory_read(walk->memory, leaf + first * sizeof *pairs, pairs, sizeof pairs)) continue;
        for (uint64_t i = 0; i < PIECE_WORDS / 2; i++) {
            const uint64_t page = (number << WIDE_BITS) + first + i;
            const uint64_t word = jemalloc_word_of(seen->version, pairs[i][0], pairs[i][1]);
            if (pairs[i][0] && !seen->page(seen->context, page << JEMALLOC_PAGE_SHIFT, word))
                return false;
        }
    }
    return true;
}

static bool see_node(void *context, uint64_t address, uint64_t node) {
    struct walk *walk = context;
    walk->number = (address - walk->table->root) / WORD;
    walk->part = node;
    return walk->seen->part(walk->seen->context, node, WIDE_BYTES) &&
           each_word(walk->memory, node, node + WIDE_BYTES, see_wide_leaf, walk);
}

bool jemalloc_table_walk(const struct memory_reader *memory, const struct jemalloc_table *table,
                         const struct jemalloc_table_seen *seen) {
    struct walk walk = {.memory = memory, .table = table, .seen = seen};
    const bool is_wide = table->levels == 3;
    const uint64_t bytes = is_wide ? WIDE_BYTES : LEVEL_BYTES;
    return seen->part(seen->context, table->root, bytes) &&
           each_word(memory, table->root, table->root + bytes, is_wide ? see_node : see_leaf,
                     &walk);
}
