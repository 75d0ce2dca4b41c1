// SPDX-License-Identifier: Apache-2.0
// Reads jemalloc's record of an extent, and the word of its table that leads there: of versions 5.2
// and 5.3, for pages of 4 KiB, as their headers extent_structs.h, edata.h, rtree.h, sc.h and
// bitmap.h lay them out.
//
// Records of both versions have 128 bytes: bits, address, size, ..., a bitmap of a slab's free
// regions. They differ in the fields of the bits, and in what a word says beside the record's
// address and its class: whether it is a slab, since 5.3 its state as well.
#ifndef TOOL_JEMALLOC_RECORD_H
#define TOOL_JEMALLOC_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum jemalloc_version { JEMALLOC_5_3, JEMALLOC_5_2, JEMALLOC_VERSIONS };

// The least step between sizes, as a power of two (--with-lg-quantum).
enum jemalloc_quantum { JEMALLOC_QUANTUM_8 = 3, JEMALLOC_QUANTUM_16 = 4 };

enum jemalloc_state {
    JEMALLOC_ACTIVE,
    JEMALLOC_DIRTY,     // free, its pages are kept
    JEMALLOC_MUZZY,     // free, its pages are the kernel's if it wants them
    JEMALLOC_RETAINED,  // address space without pages
    JEMALLOC_MOVING,    // a thread is at it
};

enum { JEMALLOC_REGIONS_MAX = 512, JEMALLOC_CLASSES = 232 };

struct jemalloc_extent {
    uint64_t address;  // of its block, if it is large: that may lie within the first page
    uint64_t bytes;    // of its pages
    uint64_t record;   // address
    enum jemalloc_state state;
    bool is_slab;
    uint8_t size_class;
    uint16_t free_count;                       // of a slab, as its record says
    uint64_t free[JEMALLOC_REGIONS_MAX / 64];  // of a slab: a bit a region, 1: free
};

enum { JEMALLOC_PAGE_SHIFT = 12, JEMALLOC_RECORD_BYTES = 128 };
#define JEMALLOC_PAGE_BYTES (UINT64_C(1) << JEMALLOC_PAGE_SHIFT)
#define JEMALLOC_ADDRESS_MOST (UINT64_C(1) << 47)
#define JEMALLOC_EXTENT_MOST (UINT64_C(1) << 42)  // more than any machine has

// An extent's record (struct edata_s or extent_s): the words that are read.
struct jemalloc_record {
    uint64_t bits, address, bytes_and_number, others[5], free[JEMALLOC_REGIONS_MAX / 64];
};
_Static_assert(sizeof(struct jemalloc_record) == JEMALLOC_RECORD_BYTES, "layout");

// What a version's records say, a number each.
struct jemalloc_facts {
    bool is_slab;
    unsigned state, size_class, free_count;
};

// Returns the bytes of the blocks of a size class, below JEMALLOC_CLASSES, and how many of the
// classes are small.
uint64_t jemalloc_class_bytes(enum jemalloc_quantum quantum, unsigned size_class);
unsigned jemalloc_small_classes(enum jemalloc_quantum quantum);

// Returns what a pair of a wide leaf says as a word of a narrow one: size class << 48 | address of
// the record | state << 2 | slab.
uint64_t jemalloc_word_of(enum jemalloc_version version, uint64_t record, uint64_t metadata);

// Returns the address of the record that a word leads to; 0: it leads to none.
uint64_t jemalloc_word_record(enum jemalloc_version version, uint64_t word);

struct jemalloc_facts jemalloc_record_facts(enum jemalloc_version version,
                                            const struct jemalloc_record *record);
uint64_t jemalloc_record_start(const struct jemalloc_record *record);
uint64_t jemalloc_record_bytes(const struct jemalloc_record *record);

// Says whether a word and the record that it leads to can be a leaf's, whatever page it is of.
bool jemalloc_record_may_be(enum jemalloc_version version, const struct jemalloc_record *record,
                            uint64_t word);

// Compares what the word of a page says of an extent with what its record says. Its class is one of
// either quantum.
bool jemalloc_record_is_plausible(enum jemalloc_version version,
                                  const struct jemalloc_record *record, uint64_t word,
                                  uint64_t page);

// True if an extent in use can be of its class. Large ones have the pages of their class, or, since
// 5.3.1, as many as they need.
bool jemalloc_extent_fits(enum jemalloc_quantum quantum, const struct jemalloc_extent *extent);

// True for a slab of just the pages that jemalloc gives its class: as few as have no rest.
bool jemalloc_slab_is_exact(enum jemalloc_quantum quantum, const struct jemalloc_extent *extent);

#endif
