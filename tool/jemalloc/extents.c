// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/extents.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE_SHIFT = 12,
    LEAF_SHIFT = 30,   // each leaf stands for 1 GiB
    LEVEL_BITS = 18,   // of an address, a level
    CLASS_SHIFT = 48,  // of a leaf's word
    RECORD_BYTES = 128,
    PIECE_WORDS = 8192,
};
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)
#define LEVEL_WORDS (UINT64_C(1) << LEVEL_BITS)
#define LEVEL_BYTES (LEVEL_WORDS * sizeof(uint64_t))
#define RECORD_MASK ((UINT64_C(1) << CLASS_SHIFT) - RECORD_BYTES)
#define ADDRESS_MOST (UINT64_C(1) << 47)

// An extent's record (struct edata_s): the words that are read.
struct record {
    uint64_t bits, address, bytes_and_number, others[5], free[JEMALLOC_REGIONS_MAX / 64];
};
_Static_assert(sizeof(struct record) == RECORD_BYTES, "layout");

// Fields of its bits: the first bit, and how many there are.
struct field {
    unsigned shift, width;
};
static const struct field field_slab = {12, 1}, field_state = {17, 3}, field_class = {20, 8},
                          field_free = {28, 10}, field_beyond = {45, 19};

static uint64_t get(const struct record *record, struct field field) {
    return record->bits >> field.shift & ((UINT64_C(1) << field.width) - 1);
}

uint64_t jemalloc_class_bytes(unsigned size_class) {
    enum { TINY = 8, QUANTUM_SHIFT = 4, GROUP_SHIFT = 2 };
    if (!size_class) return TINY;
    const unsigned number = size_class - 1, group = number >> GROUP_SHIFT;
    const uint64_t step = (number & ((1u << GROUP_SHIFT) - 1)) + 1;
    const uint64_t base = group ? UINT64_C(1) << (QUANTUM_SHIFT + GROUP_SHIFT - 1) << group : 0;
    return base + (step << ((group ? group : 1) + QUANTUM_SHIFT - 1));
}

// The bitmap is longer than the regions of most slabs need; what is behind those is left over.
static unsigned count_free(const struct jemalloc_extent *slab) {
    enum { WORD_BITS = 64 };
    const uint64_t regions = slab->bytes / jemalloc_class_bytes(slab->size_class);
    unsigned count = 0;
    for (uint64_t i = 0; i < regions; i++) count += slab->free[i / WORD_BITS] >> i % WORD_BITS & 1;
    return count;
}

static bool is_slab_plausible(const struct record *record, uint64_t bytes) {
    const uint64_t size_class = get(record, field_class);
    if (size_class >= JEMALLOC_SMALL_CLASSES) return false;
    const uint64_t regions = bytes / jemalloc_class_bytes((unsigned)size_class);
    return regions && regions <= JEMALLOC_REGIONS_MAX && get(record, field_free) <= regions;
}

static uint64_t start_of(const struct record *record) {
    return record->address & ~(PAGE_BYTES - 1);
}

static uint64_t bytes_of(const struct record *record) {
    return record->bytes_and_number & ~(PAGE_BYTES - 1);
}

// Returns whether a word and the record that it leads to can be a leaf's, whatever page it is of.
static bool may_be_record(const struct record *record, uint64_t word) {
    enum { UNUSED_LOW_BITS = 0x60 };
    const uint64_t bytes = bytes_of(record), start = start_of(record);
    return !(word & UNUSED_LOW_BITS) && !get(record, field_beyond) &&
           get(record, field_state) <= JEMALLOC_MOVING && bytes && bytes <= ADDRESS_MOST && start &&
           start <= ADDRESS_MOST;
}

// Compares what the leaf's word says of an extent with what its record says.
static bool is_plausible(const struct record *record, uint64_t word, uint64_t page) {
    const uint64_t bytes = bytes_of(record), start = start_of(record);
    if (!may_be_record(record, word) || page < start || page - start >= bytes) return false;
    // of what is no slab the last page's word keeps what was there before
    if (get(record, field_state) != JEMALLOC_ACTIVE || page != start) return true;
    const uint64_t size_class = get(record, field_class);
    if (size_class != word >> CLASS_SHIFT || get(record, field_slab) != (word & 1)) return false;
    if (get(record, field_slab)) return is_slab_plausible(record, bytes);
    return size_class < JEMALLOC_CLASSES && jemalloc_class_bytes((unsigned)size_class) <= bytes;
}

// --- the root

// Words in order, as many at a time as fit; `see` returns false to end it.
static bool each_word(const struct memory_reader *memory, uint64_t start, uint64_t end,
                      bool (*see)(void *context, uint64_t address, uint64_t word), void *context) {
    uint64_t words[PIECE_WORDS];
    for (uint64_t at = start; at < end; at += sizeof words) {
        size_t bytes = end - at < sizeof words ? end - at : sizeof words;
        if (!memory_read(memory, at, words, bytes)) continue;
        for (size_t i = 0; i < bytes / sizeof *words; i++)
            if (words[i] && !see(context, at + i * sizeof *words, words[i])) return false;
    }
    return true;
}

struct first_word {
    uint64_t address, word;
};

// Passes over words that lead to no record: an extent that was joined to the one before left such a
// word, which comes first if that one began in the leaf before.
static bool keep_first(void *context, uint64_t address, uint64_t word) {
    if (!(word & RECORD_MASK)) return true;
    *(struct first_word *)context = (struct first_word){address, word};
    return false;
}

enum { LEAF_EMPTY, LEAF_FULL, LEAF_NONE };

#define ANY_TOP UINT64_MAX

static bool may_be_leaf(uint64_t word) {
    enum { ALIGNED = 64 };
    return word % ALIGNED == 0 && word <= ADDRESS_MOST && word >= PAGE_BYTES;
}

// Finds the first word of a leaf that leads to a record. False: there is no memory, as behind most
// words that lead to no leaf. Little is read if the word comes soon; else the pieces that are read
// are taken off `pieces_left`, at whose end it finds none: a program's own pointers lead to much
// empty memory.
static bool find_first_word(const struct memory_reader *memory, uint64_t leaf,
                            unsigned *pieces_left, struct first_word *first) {
    enum { SOON_WORDS = 64 };
    const uint64_t piece_bytes = PIECE_WORDS * sizeof(uint64_t);
    uint64_t soon[SOON_WORDS];
    if (!memory_read(memory, leaf, soon, sizeof soon)) return false;
    for (size_t i = 0; i < SOON_WORDS; i++)
        if (soon[i] && !keep_first(first, leaf + i * sizeof *soon, soon[i])) return true;
    for (uint64_t at = leaf; at < leaf + LEVEL_BYTES && *pieces_left && !first->word;
         at += piece_bytes, --*pieces_left)
        each_word(memory, at, at + piece_bytes, keep_first, first);
    return true;
}

// Says whether a leaf is at that address whose place in the root is `wanted`, or any. `top` gets
// the place, by the first extent in it, which may have begun in a leaf before.
static int judge_leaf(const struct memory_reader *memory, uint64_t leaf, uint64_t wanted,
                      uint64_t *top, unsigned *pieces_left) {
    struct first_word first = {0};
    struct record record;
    if (!may_be_leaf(leaf) || !find_first_word(memory, leaf, pieces_left, &first)) return LEAF_NONE;
    if (!first.word) return *pieces_left ? LEAF_EMPTY : LEAF_NONE;
    if (!memory_read(memory, first.word & RECORD_MASK, &record, RECORD_BYTES) ||
        !may_be_record(&record, first.word))  // else all places that its numbers span are tried
        return LEAF_NONE;
    const uint64_t number = (first.address - leaf) / sizeof(uint64_t);
    const uint64_t last = (record.address + record.bytes_and_number) >> LEAF_SHIFT;
    for (*top = record.address >> LEAF_SHIFT; *top <= last && *top < LEVEL_WORDS; ++*top)
        if ((wanted == ANY_TOP || wanted == *top) &&
            is_plausible(&record, first.word, (*top << LEVEL_BITS | number) << PAGE_SHIFT))
            return LEAF_FULL;
    return LEAF_NONE;
}

struct search {
    const struct memory_reader *memory;
    const struct spans *gigabytes;
    uint64_t start, end;        // of the data that is searched
    uint64_t root;              // 0: not found
    unsigned tries_left;        // words of these data that may lead to a leaf
    unsigned pieces_left;       // that may be read in the search of a leaf ...
    unsigned root_pieces_left;  // ... and of those that a root has
};

// Every word of a root leads to the leaf of its place.
static bool see_root(void *context, uint64_t address, uint64_t word) {
    struct search *search = context;
    const uint64_t number = (address - search->root) / sizeof(uint64_t);
    uint64_t top;
    return judge_leaf(search->memory, word, number, &top, &search->root_pieces_left) != LEAF_NONE;
}

// Says whether a word at that address can stand for a gigabyte of memory, in a root that lies
// within the data. Most of the data are not much longer than a root: a program's own pointers are
// rarely where one stands.
static bool may_stand(const struct search *search, uint64_t address) {
    const uint64_t beyond = address + LEVEL_BYTES;
    uint64_t first = beyond > search->end ? (beyond - search->end + 7) / sizeof(uint64_t) : 0;
    const uint64_t start = first, end = (address - search->start) / sizeof(uint64_t) + 1;
    struct span gap;
    return start < end && !(spans_gap(search->gigabytes, &first, end, &gap) && gap.start == start &&
                            gap.end == end);
}

// A word may lead to a leaf: that tells which place of the root it has to be. (Caches of threads
// lead to leaves, too.)
static bool try_leaf(void *context, uint64_t address, uint64_t word) {
    struct search *search = context;
    uint64_t top = 0;
    if (!search->pieces_left || !search->tries_left) return false;
    if (!may_be_leaf(word) || !may_stand(search, address)) return true;
    search->tries_left--;
    if (judge_leaf(search->memory, word, ANY_TOP, &top, &search->pieces_left) != LEAF_FULL ||
        top * sizeof(uint64_t) > address)
        return true;
    const uint64_t root = address - top * sizeof(uint64_t);
    if (root < search->start || root + LEVEL_BYTES > search->end) return true;
    search->root = root;
    if (each_word(search->memory, root, root + LEVEL_BYTES, see_root, search)) return false;
    search->root = 0;
    return true;
}

uint64_t jemalloc_find_root(const struct memory_reader *memory,
                            const struct jemalloc_place *place) {
    enum { TRIES_MAX = 1 << 16, PIECES_MAX = 1 << 13, ROOT_PIECES_MAX = 1 << 14 };
    struct search search = {.memory = memory,
                            .gigabytes = &place->gigabytes,
                            .pieces_left = PIECES_MAX,
                            .root_pieces_left = ROOT_PIECES_MAX};
    for (size_t i = 0; i < place->data.items.count && !search.root; i++) {
        search.start = place->data.items.items[i].start;
        search.end = place->data.items.items[i].end;
        search.tries_left = TRIES_MAX;
        if (search.end - search.start >= LEVEL_BYTES)
            each_word(memory, search.start, search.end, try_leaf, &search);
    }
    return search.root;
}

// --- extents

struct reading {
    const struct memory_reader *memory;
    struct jemalloc_extents *extents;
    uint64_t leaf, first_page;  // of the leaf, and of the gigabyte it stands for
    uint64_t root;
    uint64_t last_record;  // of the word before
    bool is_out_of_memory;
};

static bool add_extent(struct reading *reading, const struct record *record, uint64_t address) {
    struct jemalloc_extents *extents = reading->extents;
    struct jemalloc_extent *slot = array_push(&extents->items);
    if (!slot) return false;
    *slot = (struct jemalloc_extent){.address = record->address,
                                     .bytes = record->bytes_and_number & ~(PAGE_BYTES - 1),
                                     .record = address,
                                     .state = (enum jemalloc_state)get(record, field_state),
                                     .is_slab = get(record, field_slab),
                                     .size_class = (uint8_t)get(record, field_class)};
    memcpy(slot->free, record->free, sizeof slot->free);
    extents->torn_count += slot->state == JEMALLOC_ACTIVE && slot->is_slab &&
                           count_free(slot) != get(record, field_free);
    return spans_add(&extents->tables, address, address + RECORD_BYTES);
}

static bool see_page(void *context, uint64_t address, uint64_t word) {
    struct reading *reading = context;
    const uint64_t at = word & RECORD_MASK;
    const uint64_t page =
        reading->first_page + (address - reading->leaf) / sizeof(uint64_t) * PAGE_BYTES;
    struct record record;
    if (!at || at == reading->last_record) return true;
    reading->last_record = at;
    if (!memory_read(reading->memory, at, &record, RECORD_BYTES) ||
        !is_plausible(&record, word, page)) {
        reading->extents->torn_count++;
        return true;
    }
    if ((record.address & ~(PAGE_BYTES - 1)) != page) return true;  // its first page was seen
    reading->is_out_of_memory = !add_extent(reading, &record, at);
    return !reading->is_out_of_memory;
}

static bool see_leaf(void *context, uint64_t address, uint64_t leaf) {
    struct reading *reading = context;
    reading->leaf = leaf;
    reading->first_page = (address - reading->root) / sizeof(uint64_t) << LEAF_SHIFT;
    reading->last_record = 0;
    reading->is_out_of_memory =
        !spans_add(&reading->extents->tables, leaf, leaf + LEVEL_BYTES) ||
        !each_word(reading->memory, leaf, leaf + LEVEL_BYTES, see_page, reading);
    return !reading->is_out_of_memory;
}

enum jemalloc_finding jemalloc_extents_read(const struct memory_reader *memory,
                                            const struct jemalloc_place *place,
                                            struct jemalloc_extents *extents) {
    *extents = (struct jemalloc_extents){0};
    struct reading reading = {.memory = memory, .extents = extents};
    reading.root = jemalloc_find_root(memory, place);
    if (!reading.root) return JEMALLOC_NONE;
    if (spans_add(&extents->tables, reading.root, reading.root + LEVEL_BYTES) &&
        each_word(memory, reading.root, reading.root + LEVEL_BYTES, see_leaf, &reading)) {
        spans_settle(&extents->tables);
        if (extents->torn_count <= extents->items.count / 8 + 1) return JEMALLOC_FOUND;
    }
    jemalloc_extents_free(extents);
    return reading.is_out_of_memory ? JEMALLOC_FAILED : JEMALLOC_NONE;
}

bool jemalloc_place_add_memory(struct jemalloc_place *place, uint64_t start, uint64_t end) {
    return start >= end ||
           spans_add(&place->gigabytes, start >> LEAF_SHIFT, ((end - 1) >> LEAF_SHIFT) + 1);
}

void jemalloc_place_settle(struct jemalloc_place *place) {
    spans_settle(&place->data);
    spans_settle(&place->gigabytes);
}

void jemalloc_place_free(struct jemalloc_place *place) {
    spans_free(&place->data);
    spans_free(&place->gigabytes);
}

void jemalloc_extents_free(struct jemalloc_extents *extents) {
    array_free(&extents->items);
    spans_free(&extents->tables);
}
