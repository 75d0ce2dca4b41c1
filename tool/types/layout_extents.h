// SPDX-License-Identifier: Apache-2.0
// Where containers have their elements: a vector up to its size, a deque in the pieces that it
// uses, a hash table of libstdc++ its buckets, a Vec up to its length, Rust's hash table in the
// places that its bytes call full.
#ifndef TOOL_TYPES_LAYOUT_EXTENTS_H
#define TOOL_TYPES_LAYOUT_EXTENTS_H

#include "tool/types/type.h"

enum extents_of {
    EXTENTS_NONE,
    EXTENTS_VECTOR,
    EXTENTS_DEQUE,
    EXTENTS_BUCKETS,
    EXTENTS_VEC,
    EXTENTS_TABLE
};

// What of a block are elements, as the container says that refers to it: what lies before and
// behind them are left-overs of others.
struct layout_extent {
    uint64_t offset;    // of the pointer to the block, in the object
    uint64_t from, to;  // in the block
    uint64_t inner;     // each of them points to a block with so many bytes of elements; 0: not so
    bool
        is_table;  // behind them lies a byte for each, the last one's first: below 128, it is there
    bool is_end;   // the pointer leads behind or among elements: it says nothing
};

enum { LAYOUT_EXTENTS_MAX = 16 };
struct layout_extents {
    struct layout_extent items[LAYOUT_EXTENTS_MAX];
    unsigned count;
};

// Tells which of them a type is.
enum extents_of layout_extents_kind(const struct type *type);

// Adds what the container at an offset of the bytes says of its elements. False: it contradicts
// itself, as one that was not constructed yet.
struct layout_bytes {
    const uint8_t *bytes;
    uint64_t size;
};
bool layout_add_extents(struct layout_extents *extents, struct layout_bytes bytes,
                        const struct type *type, uint64_t offset);

// Returns true if it is made of the template whose name, with its bracket, is `begin`; not a type
// inside.
bool layout_is_of_template(const struct type *type, const char *begin);

// The offset and type of a member of that name in an object, wherever in its bases and members.
bool layout_member(const struct type *type, const char *name, uint64_t *offset,
                   const struct type **found);

#endif
