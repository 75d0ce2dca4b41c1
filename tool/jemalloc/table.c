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

// Words of a part of the table that lead to something are asked about, in order, until one fits. An
// extent that is joined, split or handed out at the moment has records that do not agree, so more
// than one is asked about.
struct candidates {
    const struct memory_reader *memory;
    bool (*fits)(void *context, uint64_t address, uint64_t word);
    void *context;
    unsigned step;  // of words that may lead to something: 2 in a leaf of pairs
    unsigned asked;
    uint64_t last_record;  // that was asked about
    bool is_found;
};
enum { ASKED_MAX = 8 };

// Passes over words that lead to no record: an extent that was joined to the one before left such a
// word, which comes first if that one began in the leaf before. Parts begin at multiples of pairs.
static bool see_candidate(void *context, uint64_t address, uint64_t word) {
    struct candidates *candidates = context;
    const uint64_t record = jemalloc_word_record(JEMALLOC_5_2, word);
    if (!record || record == candidates->last_record || address / WORD % candidates->step)
        return true;
    candidates->last_record = record;
    candidates->asked++;
    candidates->is_found = candidates->fits(candidates->context, address, word);
    return !candidates->is_found && candidates->asked < ASKED_MAX;
}

enum { LEAF_EMPTY, LEAF_FULL, LEAF_NONE };

#define ANY_TOP UINT64_MAX

static bool may_be_part(uint64_t word) {
    enum { ALIGNED = 64 };
    return word % ALIGNED == 0 && word <= JEMALLOC_ADDRESS_MOST && word >= JEMALLOC_PAGE_BYTES;
}

// Asks about the words of a part of the table. False: there is no memory, as behind most words that
// lead to no such part. Little is read if a word that fits comes soon; else the pieces that are
// read are taken off `pieces_left`, at whose end it finds none: a program's own pointers lead to
// much empty memory.
static bool ask_about(struct candidates *candidates, uint64_t part, uint64_t bytes,
                      unsigned *pieces_left) {
    enum { SOON_WORDS = 64 };
    const uint64_t piece_bytes = PIECE_WORDS * WORD;
    const struct memory_reader *memory = candidates->memory;
    uint64_t soon[SOON_WORDS];
    if (!memory_read(memory, part, soon, sizeof soon)) return false;
    for (size_t i = 0; i < SOON_WORDS; i++)
        if (soon[i] && !see_candidate(candidates, part + i * WORD, soon[i])) return true;
    for (uint64_t at = part + sizeof soon; at < part + bytes && *pieces_left; --*pieces_left) {
        const uint64_t end = (at / piece_bytes + 1) * piece_bytes;
        if (!each_word(memory, at, end < part + bytes ? end : part + bytes, see_candidate,
                       candidates))
            break;
        at = end;
    }
    return true;
}

// `is_read`: its memory is there.
static int judged(const struct candidates *candidates, bool is_read, unsigned pieces_left) {
    if (candidates->is_found) return LEAF_FULL;
    return is_read && !candidates->asked && pieces_left ? LEAF_EMPTY : LEAF_NONE;
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

struct leaf {
    const struct search *search;
    uint64_t address;
    uint64_t wanted, top;  // its place in the root: as asked for, or any; as found
};

// Says whether a record is of a place of the root that is wanted. An extent may have begun in a
// leaf before.
static bool is_record_of(enum jemalloc_version version, const struct jemalloc_record *record,
                         struct leaf *leaf, uint64_t address, uint64_t word) {
    enum { PLACES_MOST = 1 << 10 };  // an extent's
    if (!jemalloc_record_may_be(version, record, word)) return false;
    const uint64_t number = (address - leaf->address) / WORD;
    const uint64_t begin = record->address >> GIB_SHIFT;
    const uint64_t last = (record->address + record->bytes_and_number) >> GIB_SHIFT;
    for (uint64_t top = begin; top <= last && top < LEVEL_WORDS && top - begin < PLACES_MOST;
         top++) {
        leaf->top = top;
        if ((leaf->wanted == ANY_TOP || leaf->wanted == top) &&
            jemalloc_record_is_plausible(version, record, word,
                                         (top << LEVEL_BITS | number) << JEMALLOC_PAGE_SHIFT))
            return true;
    }
    return false;
}

// Says whether a word of a leaf leads to the record of its page, of any version.
static bool fits_leaf(void *context, uint64_t address, uint64_t word) {
    struct leaf *leaf = context;
    struct jemalloc_record record;
    for (enum jemalloc_version version = 0; version < JEMALLOC_VERSIONS; version++) {
        if (memory_read(leaf->search->memory, jemalloc_word_record(version, word), &record,
                        sizeof record) &&
            is_record_of(version, &record, leaf, address, word))
            return true;
    }
    return false;
}

// Says whether a leaf is at that address; `top` gets its place.
static int judge_leaf(struct search *search, uint64_t address, uint64_t wanted, uint64_t *top,
                      unsigned *pieces_left) {
    struct leaf leaf = {.search = search, .address = address, .wanted = wanted};
    struct candidates candidates = {
        .memory = search->memory, .fits = fits_leaf, .context = &leaf, .step = 1};
    const bool is_read =
        may_be_part(address) && ask_about(&candidates, address, LEVEL_BYTES, pieces_left);
    *top = leaf.top;
    return judged(&candidates, is_read, *pieces_left);
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

struct wide_leaf {
    const struct search *search;
    uint64_t address, number;  // of the leaf among all
};

static bool fits_wide_leaf(void *context, uint64_t address, uint64_t word) {
    const struct wide_leaf *leaf = context;
    struct jemalloc_record record;
    uint64_t metadata = 0;
    const uint64_t place = (address - leaf->address) / WORD;
    const uint64_t page = (leaf->number << WIDE_BITS | place / 2) << JEMALLOC_PAGE_SHIFT;
    if (!memory_read_word(leaf->search->memory, address + WORD, &metadata) ||
        !memory_read(leaf->search->memory, word, &record, sizeof record))
        return false;
    for (enum jemalloc_version version = 0; version < JEMALLOC_VERSIONS; version++) {
        const uint64_t joined = jemalloc_word_of(version, word, metadata);
        if (jemalloc_record_is_plausible(version, &record, joined, page)) return true;
    }
    return false;
}

static int judge_wide_leaf(const struct search *search, uint64_t address, uint64_t number,
                           unsigned *pieces_left) {
    struct wide_leaf leaf = {search, address, number};
    struct candidates candidates = {
        .memory = search->memory, .fits = fits_wide_leaf, .context = &leaf, .step = 2};
    const bool is_read =
        may_be_part(address) && ask_about(&candidates, address, 2 * WIDE_BYTES, pieces_left);
    return judged(&candidates, is_read, *pieces_left);
}

struct node {
    const struct search *search;
    uint64_t address, top;
    unsigned *pieces_left;
    bool has_empty;  // a leaf without an extent
};

static bool fits_node(void *context, uint64_t address, uint64_t word) {
    struct node *node = context;
    const uint64_t number = node->top << WIDE_BITS | (address - node->address) / WORD;
    const int leaf = judge_wide_leaf(node->search, word, number, node->pieces_left);
    node->has_empty |= leaf == LEAF_EMPTY;
    return leaf == LEAF_FULL;
}

static int judge_node(const struct search *search, uint64_t address, uint64_t top,
                      unsigned *pieces_left) {
    struct node node = {search, address, top, pieces_left, false};
    struct candidates candidates = {
        .memory = search->memory, .fits = fits_node, .context = &node, .step = 1};
    const bool is_read =
        may_be_part(address) && ask_about(&candidates, address, WIDE_BYTES, pieces_left);
    const int found = judged(&candidates, is_read, *pieces_left);
    return found == LEAF_NONE && node.has_empty ? LEAF_EMPTY : found;
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
