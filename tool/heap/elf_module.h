// SPDX-License-Identifier: Apache-2.0
// A program file or library of an image: where it was loaded, which of its memory is constant, the
// names of what lies in it. The image itself has the first two, in the ELF headers that are
// mapped with every module; names come from files (tool/symbol/locate.h).
#ifndef TOOL_HEAP_ELF_MODULE_H
#define TOOL_HEAP_ELF_MODULE_H

#include <elf.h>

#include "tool/heap/image.h"
#include "tool/symbol/locate.h"
#include "tool/symbol/symtab.h"

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
};

// Opens the module of a mapped file; `module` is closed and zero if it is none. False without
// memory.
bool elf_module_open(const struct core_image *core, const struct core_file *file,
                     const struct symbol_options *options, struct string_pool *store,
                     struct elf_module *module);
void elf_module_close(struct elf_module *module);

// Whether the address is one of the module's, its zeroed data among them.
bool elf_module_has(const struct elf_module *module, uint64_t address);

// Whether the address lies in memory of the module that the program cannot write once it runs:
// code, constants, and what the dynamic linker made constant.
bool elf_module_is_constant(const struct elf_module *module, uint64_t address);

// Reads constants from the module's file; false if they are not there.
bool elf_module_read(const struct elf_module *module, uint64_t address, void *out, size_t size);

#endif
