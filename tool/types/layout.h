// SPDX-License-Identifier: Apache-2.0
// Where the pointers of an object lie and what they lead to, by its type and its bytes.
//
// What the libraries of the languages keep in another form than their types say is known here:
//
//     libstdc++  nodes of list, forward_list, map, set and the unordered ones, which are linked as
//                their bases; buffers for values that are constructed in them; optional, variant
//                elements of vector and deque, buckets, as far as the container has filled them
//     Rust       enumerations by their discriminant; the elements of Vec, which is a pointer to
//                bytes (RawVec), and of HashMap, which lie before what it points to
//
// A pointer in a union is a guess: nothing says which member is in use.
#ifndef TOOL_TYPES_LAYOUT_H
#define TOOL_TYPES_LAYOUT_H

#include "tool/types/layout_extents.h"
#include "tool/types/type.h"

struct layout_pointer {
    uint64_t offset;
    const struct type *target;    // what it leads to
    const struct type *declared;  // the same as the pointer's own type has it
    const struct type *holder;    // the library's container or pointer that it is in; NULL: none
    uint64_t back;                // what it leads to begins so many bytes before
    bool is_guess;
    const struct layout_extent *extent;  // of the elements that it leads to; NULL: not known
};

enum layout_words {
    LAYOUT_NONE,
    LAYOUT_SHORT,  // members of the languages' libraries left out: "registry.by_id"
    LAYOUT_EXACT,  // an expression that debuggers evaluate: those members by their distances
};
enum { LAYOUT_TEXT_BYTES = 4096 };

struct layout {
    const uint8_t *bytes;                                              // of the object
    uint64_t size;                                                     // that there are
    bool (*see)(void *context, const struct layout_pointer *pointer);  // false: enough; may be NULL
    // May be NULL: for each struct and union of the object, before what is in it.
    void (*see_struct)(void *context, uint64_t offset, const struct type *type);
    void *context;
    enum layout_words words;
    char text[LAYOUT_TEXT_BYTES];  // with `words`: an expression for what is seen; at first the
                                   // object's
    // its own
    const struct type *node, *element, *holder;
    bool has_base;                 // it is in an object of a library, whose expression this is
    char base[LAYOUT_TEXT_BYTES];  // of LAYOUT_EXACT
    uint64_t base_offset;
    uint64_t alternative;  // of a std::variant
    uint64_t back;         // of `element`
    unsigned guesses, depth;
    bool is_chosen, is_ended;
    bool is_contradicted;  // a container in it says what cannot be
    struct layout_extents extents;
};

// Goes through an object that begins at an offset of the bytes.
void layout_walk(struct layout *layout, const struct type *type, uint64_t offset);

// Whether objects of that type have pointers.
bool layout_has_pointers(const struct type *type);

// Whether it is of a language's library.
bool layout_is_library(const struct type *type);

// Whether expressions do without its name and its members' names: of a library, which debuggers do
// not take, or Rust's, which they do not take where pointers are moved.
bool layout_is_unnamed(const struct type *type);

// Writes the name of a type as debuggers know it; of an unnamed one "char", behind a pointer
// "void".
void layout_write_exact(const struct type *type, char *text, size_t size);

// Whether it is a node of one of libstdc++'s containers.
bool layout_is_node(const struct type *type);

// Whether it is what such nodes are linked as, without what is in them.
bool layout_is_link(const struct type *type);

#endif
