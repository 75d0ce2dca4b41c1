// SPDX-License-Identifier: Apache-2.0
// Reads jemalloc's extents from outside: of versions 5.2 and 5.3, built for pages of 4 KiB, for
// addresses of 48 or 57 bits and for sizes in steps of 16 bytes or of 8 (redis' own copy).
//
// The table (table.h) leads to a record of each extent (record.h). Each word is believed only if
// the record says the same of itself as the table says of it, and a slab's record counts as many
// free regions as its bitmap has. Slabs tell which steps sizes have: each class has pages without a
// rest.
#ifndef TOOL_JEMALLOC_EXTENTS_H
#define TOOL_JEMALLOC_EXTENTS_H

#include "tool/base/array.h"
#include "tool/jemalloc/table.h"

enum jemalloc_finding {
    JEMALLOC_NONE,   // no such table
    JEMALLOC_FOUND,  // every extent was read
    JEMALLOC_FAILED  // no memory
};

struct jemalloc_extents {
    ARRAY(struct jemalloc_extent) items;  // ascending by address
    struct spans tables;                  // of the root, the leaves and the records
    uint64_t torn_count;                  // words that contradict what they lead to
    enum jemalloc_version version;
    enum jemalloc_quantum quantum;
    uint64_t large_pad;  // bytes of a large extent that are not its block's
};

enum jemalloc_finding jemalloc_extents_read(const struct memory_reader *memory,
                                            const struct jemalloc_place *place,
                                            struct jemalloc_extents *extents);
// Returns the root's address; 0: none is found.
uint64_t jemalloc_find_root(const struct memory_reader *memory, const struct jemalloc_place *place);

void jemalloc_extents_free(struct jemalloc_extents *extents);

// Returns the bytes of the extent's block, or of each if it is a slab.
uint64_t jemalloc_block_bytes(const struct jemalloc_extents *extents,
                              const struct jemalloc_extent *extent);

#endif
