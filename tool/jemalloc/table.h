// SPDX-License-Identifier: Apache-2.0
// Finds and walks the table by which jemalloc knows the extent of an address. It has two levels or
// three, by how wide addresses were on the machine that jemalloc was built on:
//
//     48 bits  root   in the data of jemalloc's module: 2^18 words, by bits 30 to 47 of an address
//              leaf   2^18 words, by bits 12 to 29: size class << 48 | record | state << 2 | slab
//     57 bits  root   2^15 words, by bits 42 to 56; each leads to a node
//              node   2^15 words, by bits 27 to 41
//              leaf   2^15 pairs, by bits 12 to 26: the record, and what is said of it
//
// Nothing is found by names, so stripped and linked-in copies are read too. A root is one whose
// every word leads to a leaf with an extent of that place.
#ifndef TOOL_JEMALLOC_TABLE_H
#define TOOL_JEMALLOC_TABLE_H

#include "tool/base/spans.h"
#include "tool/jemalloc/record.h"
#include "tool/proc/memory_reader.h"

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

struct jemalloc_table {
    uint64_t root;    // address
    unsigned levels;  // 2 or 3; 0: none is found
};

// Returns the one that is found first in the place, of any version.
struct jemalloc_table jemalloc_table_find(const struct memory_reader *memory,
                                          const struct jemalloc_place *place);

// Receives a part of the table, and a page with the word that its leaf has of it
// (jemalloc_word_of). False: to end the walk.
struct jemalloc_table_seen {
    enum jemalloc_version version;
    bool (*part)(void *context, uint64_t address, uint64_t bytes);
    bool (*page)(void *context, uint64_t page, uint64_t word);
    void *context;
};
bool jemalloc_table_walk(const struct memory_reader *memory, const struct jemalloc_table *table,
                         const struct jemalloc_table_seen *seen);

#endif
