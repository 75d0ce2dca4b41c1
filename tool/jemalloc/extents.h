// SPDX-License-Identifier: Apache-2.0
// Reads jemalloc's extents from outside: of version 5.3.0, for pages of 4 KiB and addresses of 48
// bits, as its headers edata.h, rtree.h, sc.h and bitmap.h lay them out.
//
//     root   in the data of the module that jemalloc is in: 2^18 words, by bits 30 to 47 of an
//            address; each 0 or the address of a leaf
//     leaf   2^18 words, by bits 12 to 29: size class << 48 | extent's record | state << 2 | slab
//     record 128 bytes: bits, address, size, ..., a bitmap of a slab's free regions
//
// Nothing is found by names, so stripped and linked-in copies are read too. Each word is believed
// only if the record says the same of itself as the leaf says of it, and a slab's record counts as
// many free regions as its bitmap has.
#ifndef TOOL_JEMALLOC_EXTENTS_H
#define TOOL_JEMALLOC_EXTENTS_H

#include "tool/base/array.h"
#include "tool/base/spans.h"
#include "tool/proc/memory_reader.h"

enum jemalloc_state {
    JEMALLOC_ACTIVE,
    JEMALLOC_DIRTY,     // free, its pages are kept
    JEMALLOC_MUZZY,     // free, its pages are the kernel's if it wants them
    JEMALLOC_RETAINED,  // address space without pages
    JEMALLOC_MOVING,    // a thread is at it
};

enum { JEMALLOC_REGIONS_MAX = 512, JEMALLOC_SMALL_CLASSES = 36, JEMALLOC_CLASSES = 232 };

struct jemalloc_extent {
    uint64_t address;  // of its block, if it is large: that may lie within the first page
    uint64_t bytes;    // of its pages
    uint64_t record;   // address
    enum jemalloc_state state;
    bool is_slab;
    uint8_t size_class;
    uint64_t free[JEMALLOC_REGIONS_MAX / 64];  // of a slab: a bit a region, 1: free
};

enum jemalloc_finding {
    JEMALLOC_NONE,   // no such table
    JEMALLOC_FOUND,  // every extent was read
    JEMALLOC_FAILED  // no memory
};

struct jemalloc_extents {
    ARRAY(struct jemalloc_extent) items;  // ascending by address
    struct spans tables;                  // of the root, the leaves and the records
    uint64_t torn_count;                  // words that contradict what they lead to
};

// The memory in which a root is searched.
struct jemalloc_place {
    struct spans data;       // addresses: the writable memory of modules
    struct spans gigabytes;  // numbers of the gigabytes that have any memory of the process
};

// Adds memory of the process. False without memory.
bool jemalloc_place_add_memory(struct jemalloc_place *place, uint64_t start, uint64_t end);

// To be called when all is added.
void jemalloc_place_settle(struct jemalloc_place *place);
void jemalloc_place_free(struct jemalloc_place *place);

enum jemalloc_finding jemalloc_extents_read(const struct memory_reader *memory,
                                            const struct jemalloc_place *place,
                                            struct jemalloc_extents *extents);
// Returns the root's address; 0: none is found.
uint64_t jemalloc_find_root(const struct memory_reader *memory, const struct jemalloc_place *place);

void jemalloc_extents_free(struct jemalloc_extents *extents);

// Returns the bytes of the blocks of a size class, below JEMALLOC_CLASSES.
uint64_t jemalloc_class_bytes(unsigned size_class);

#endif
