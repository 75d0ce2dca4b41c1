// SPDX-License-Identifier: Apache-2.0
// Call stacks of a recording: the code that frames belong to, the distinct addresses, and the tree
// that they form.
#ifndef TOOL_MODEL_TREE_H
#define TOOL_MODEL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/array.h"
#include "tool/model/index_table.h"
#include "tool/model/modules.h"
#include "tool/model/reader.h"

// What frames of a recording that have no address belong to, numbered, each once by what it says:
// pieces of Python code, and names that stand for no code. Texts are copies.

struct code {
    const char *function;  // as Python has it, "Class.method"; "" for code that is not known
    const char *file;
    uint32_t first_line;
    bool is_name;       // no code: `function` is the name, which needs no other one
    uint64_t identity;  // hash of function and file; the same in every run
};

struct code_number {
    uint32_t number, index;
};

struct codes {
    ARRAY(struct code) list;
    struct index_table table;
    ARRAY(struct code_number) numbers;  // of the recording's records
    struct index_table number_table;
    uint64_t read_bytes;
};

void codes_free(struct codes *codes);

enum codes_result { CODES_OK, CODES_DAMAGED, CODES_NO_MEMORY };

// Index of the code whose record is that number of the recording (format.h, CAIRN_CODE_PYTHON).
enum codes_result codes_read(struct codes *codes, const struct recording *recording,
                             uint32_t number, uint32_t *index);

// Index of the name at that offset of STRINGS (format.h, CAIRN_CODE_NAME).
enum codes_result codes_of_name(struct codes *codes, struct recording *recording, uint32_t offset,
                                uint32_t *index);

// Index of a code that says the same, which is added if there is none. False without memory.
bool codes_add(struct codes *codes, const struct code *wanted, uint32_t *index);

// The distinct code addresses of a recording's stacks, numbered. Symbols are asked for once a
// place, however many stacks go through it.

struct place {
    uint32_t module;   // index in the module map (the first entry of its file) or MODULE_NONE
    uint32_t cut;      // 0, or enum cairn_cut: no code, the mark of a stack's outer end; of
                       // CAIRN_CUT_MAX_DEPTH with the number of frames (cut_at)
    uint64_t address;  // of the call's last byte (return address - 1): virtual address in the ELF
                       // file of `module`, or the address in the process without one; of Python
                       // code: PLACE_PYTHON, index of the code, line
};

// Marks of stacks that were cut at different numbers of frames are different places.
#define CUT_KIND_BITS 8u
static inline uint32_t cut_at(uint32_t frames) {
    return frames << CUT_KIND_BITS | CAIRN_CUT_MAX_DEPTH;
}
static inline uint32_t cut_kind(uint32_t cut) {  // enum cairn_cut
    return cut & ((1u << CUT_KIND_BITS) - 1);
}
static inline uint32_t cut_frames(uint32_t cut) {
    return cut >> CUT_KIND_BITS;
}

// Bit of an address that no native code has.
#define PLACE_PYTHON (1ull << 63)

struct place_cache_slot {
    uint64_t pc;
    uint32_t place_plus_1;
};

struct places {
    const struct module_map *modules;
    struct codes codes;  // of Python
    ARRAY(struct place) list;
    struct index_table table;
    struct place_cache_slot *cache;  // return address -> place; NULL: none yet
    size_t cache_slots;              // grows with the list
};

// `modules` must outlive it.
void places_start(struct places *places, const struct module_map *modules);
void places_free(struct places *places);
// Code lies elsewhere than before: addresses are looked up anew.
void places_forget_addresses(struct places *places);

// Number of the place; false without memory. Code of a module whose entry is damaged or not
// finished is code of no module.
bool places_of_address(struct places *places, uint64_t return_address, uint32_t *place);
bool places_of_module(struct places *places, uint32_t module, uint64_t return_address,
                      uint32_t *place);
bool places_of_code(struct places *places, uint32_t code, uint32_t line, uint32_t *place);
bool places_of_cut(struct places *places, uint32_t cut, uint32_t *place);

// The Python code of a place and its line, or its name; NULL if it is none.
const struct code *place_code(const struct places *places, uint32_t place, uint32_t *line);

// Hash that is the same in every run and for every load address.
uint64_t place_identity(const struct places *places, uint32_t place);

// Stacks as a prefix tree: a node is a frame together with everything outside of it, so equal
// stacks are the same node whatever thread or record they came from. Nodes only grow; a child's
// index is higher than its parent's.
//
// Most nodes are made right after their parent, as the next frame of a new stack: such a child is
// the next node. Only other children are in the table, and their parent says so.
//
// `jump` leads to some ancestor, so that one of any depth is found in a logarithmic number of
// steps (skew-binary jump pointers): a made-up file cannot cost depth times cells.
#define TREE_ROOT 0u  // the empty stack

struct tree_node {
    uint32_t parent;
    uint32_t jump;
    uint32_t place;           // index in places; without meaning in the root
    uint32_t depth : 31;      // frames from the outermost; 0 in the root
    uint32_t has_others : 1;  // children in the table
};

struct tree {
    ARRAY(struct tree_node) nodes;
    struct index_table table;
};

// False without memory.
bool tree_start(struct tree *tree);
void tree_free(struct tree *tree);

// About so many nodes are to come, for so many stacks.
void tree_expect(struct tree *tree, size_t count, size_t stack_count);

// The node of `place` called by `parent`, made if there is none yet; false without memory.
bool tree_child(struct tree *tree, uint32_t parent, uint32_t place, uint32_t *child);

// The node's ancestor of `depth`; the node itself if it is not deeper.
uint32_t tree_ancestor(const struct tree *tree, uint32_t node, uint32_t depth);

#endif
