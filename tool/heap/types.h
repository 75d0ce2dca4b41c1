// SPDX-License-Identifier: Apache-2.0
// What the first word of a block says about the block: an object of C++ with virtual functions
// begins with the address of its class' table, other blocks with that of a function, of constants,
// or of a text. Such a word is the block's signature.
//
// A word is a signature if it leads to memory that a file was mapped to and that the program does
// not write. Class names come from the type information beside the table, which lies in the process
// ("Itanium C++ ABI", 2.5.2 and 2.9.4), or else from the symbol of the table (its address is the
// word minus 16), other names from the symbol that covers the address. What the image does not have
// of constants is read from the module's file, if that is the file that ran: its build-id is
// compared with the one in the image.
//
// Modules are opened when the first word leads to them. Not for several threads at once.
//
// A program file or library of an image: where it was loaded, which of its memory is constant, the
// names of what lies in it. The image itself has the first two, in the ELF headers that are
// mapped with every module; names come from files (tool/symbol/locate.h).
#ifndef TOOL_HEAP_TYPES_H
#define TOOL_HEAP_TYPES_H

#include <elf.h>

#include "tool/heap/image.h"
#include "tool/symbol/image.h"
#include "tool/symbol/locate.h"
#include "tool/symbol/options.h"

enum core_type_kind {
    CORE_TYPE_CLASS,   // of C++; its name is the class'
    CORE_TYPE_SYMBOL,  // "handler", "table+0x10"
    CORE_TYPE_MODULE,  // no symbol there: "libfoo.so.1+0x2010", an address in the ELF file
};

struct core_type {
    uint64_t signature;
    enum core_type_kind kind;
    const char *name;        // safe to print; belongs to core_types, which has each text once
    const char *whole_name;  // of a class: with all template arguments, as debug information has it
};

struct core_types;

// The image and the options must outlive the types. NULL without memory.
struct core_types *core_types_open(const struct core_image *core,
                                   const struct symbol_options *options);
// Takes NULL.
void core_types_close(struct core_types *types);

// The type that the word stands for; NULL: it is no signature. Valid until core_types_close.
const struct core_type *core_type_of_word(struct core_types *types, uint64_t word);

// The same of a block's first word; NULL too if it has less than a word, or the image lacks it.
const struct core_type *core_type_of_block(struct core_types *types, uint64_t address,
                                           uint64_t size);

// What lies at an address of a module, data among it: "held+0x20", "libfoo.so.1+0x2010"; safe to
// print. False: it is no module's.
bool core_types_place(struct core_types *types, uint64_t address, char *text, size_t size);

// The modules that words led to and whose file is missing or another one: their count, and one of
// them with the reason, in `text` ("" for none).
size_t core_types_missing(const struct core_types *types, char *text, size_t size);

enum { ELF_MODULE_SEGMENTS_MAX = 64 };

struct elf_module {
    const char *path;  // as the process saw it
    uint64_t start;    // where its first bytes were mapped
    uint64_t bias;     // address = bias + virtual address in the ELF file
    uint16_t segment_count;
    Elf64_Phdr segments[ELF_MODULE_SEGMENTS_MAX];
    struct located files;  // closed where they are missing or other ones
    struct symtab symbols;
    bool is_elf;
    bool is_asked_for;  // a word led to it
};

// Opens the module of a mapped file; `module` is closed and zero if it is none. False without
// memory.
bool elf_module_open(const struct core_image *core, const struct core_file *file,
                     const struct symbol_options *options, struct string_pool *store,
                     struct elf_module *module);

// Opens all modules and calls `see` for each. False if `see` was, or without memory.
bool core_types_each_module(struct core_types *types,
                            bool (*see)(void *context, const struct elf_module *module),
                            void *context);

// What it was opened with.
const struct symbol_options *core_types_options(const struct core_types *types);

#endif
