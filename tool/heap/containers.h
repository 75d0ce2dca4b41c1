// SPDX-License-Identifier: Apache-2.0
// How full the containers of a program are: vectors, strings, deques, hash tables of libstdc++ and
// of Rust, wherever typed.h finds them: in variables that last, in blocks, and in variables of
// functions, if they have a block that no other has.
//
//     capacity  bytes that a container has for elements, of hash tables of libstdc++ for buckets
//     used      those of them that elements are in; of buckets at most one for each element
//
// Figures are the containers' own, without what allocators add. What contradicts itself, as in a
// container that is changed just now, is left out and counted.
#ifndef TOOL_HEAP_CONTAINERS_H
#define TOOL_HEAP_CONTAINERS_H

#include "tool/heap/typed.h"

struct container_row {
    const struct type *type;
    uint64_t count;     // of containers
    uint64_t empty;     // those with capacity and without an element
    uint64_t elements;  // in them
    uint64_t capacity_bytes, used_bytes;
    uint64_t largest_unused, largest_at;  // of one: the bytes, and where they are
};

struct containers {
    ARRAY(struct container_row) rows;  // by unused bytes, the most first
    uint64_t broken_count;             // containers that contradict themselves
    uint64_t unplaced_count;  // variables of functions that optimized code has no place for
};

// False without memory.
bool containers_find(struct typed *typed, struct containers *containers);
void containers_free(struct containers *containers);

#endif
