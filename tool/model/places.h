// SPDX-License-Identifier: Apache-2.0
// The distinct code addresses of a recording's stacks, numbered. Symbols are asked for once a
// place, however many stacks go through it.
#ifndef TOOL_MODEL_PLACES_H
#define TOOL_MODEL_PLACES_H

#include "tool/base/array.h"
#include "tool/model/codes.h"
#include "tool/model/index_table.h"
#include "tool/model/modules.h"

struct place {
    uint32_t module;   // index in the module map (the first entry of its file) or MODULE_NONE
    uint32_t cut;      // 0, or enum cairn_cut: no code, the mark of a stack's outer end
    uint64_t address;  // of the call's last byte (return address - 1): virtual address in the ELF
                       // file of `module`, or the address in the process without one; of Python
                       // code: PLACE_PYTHON, index of the code, line
};

// Bit of an address that no native code has.
#define PLACE_PYTHON (1ull << 63)

#define PLACE_CACHE_SLOTS 4096u
struct place_cache_slot {
    uint64_t pc;
    uint32_t place_plus_1;
};

struct places {
    const struct module_map *modules;
    struct codes codes;  // of Python
    ARRAY(struct place) list;
    struct index_table table;
    struct place_cache_slot cache[PLACE_CACHE_SLOTS];  // return address -> place
};

// `modules` must outlive it.
void places_start(struct places *places, const struct module_map *modules);
void places_free(struct places *places);

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

#endif
