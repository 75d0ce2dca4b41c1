// SPDX-License-Identifier: Apache-2.0
// One opened ELF file: a module itself, its separate debug file, or the small one packed in it.
//
// The functions of a module by address, on demand its data too, from its ELF symbol tables. Sorted
// once, then searched.
#ifndef TOOL_SYMBOL_IMAGE_H
#define TOOL_SYMBOL_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/symbol/bytes.h"

#define IMAGE_BUILD_ID_MAX 64  // SHA-1 has 20; linkers accept any, we compare what fits

struct image {
    int fd;        // -1 if not open or in memory
    Elf *elf;      // NULL if not open
    void *memory;  // of an image unpacked into memory; freed with the image
    size_t string_section;
    uint8_t build_id[IMAGE_BUILD_ID_MAX];
    size_t build_id_bytes;  // 0: the file has none
};

#define IMAGE_CLOSED                                                                               \
    { .fd = -1 }

enum image_result {
    IMAGE_OK,
    IMAGE_MISSING,     // no such file, or it may not be read
    IMAGE_NOT_A_FILE,  // a directory, device, pipe
    IMAGE_NOT_ELF,
};

// Opens and maps `path`; `image` stays closed unless IMAGE_OK.
enum image_result image_open(struct image *image, const char *path);
// Takes over `memory` (from malloc), also when it fails.
enum image_result image_open_memory(struct image *image, void *memory, size_t bytes);
// Takes a closed image too.
void image_close(struct image *image);

// The section of that name with content in this file (not NOBITS), NULL if there is none.
Elf_Scn *image_section(const struct image *image, const char *name, GElf_Shdr *header);

// Its bytes, or those of the section with the other name, which GNU's old form of compression gives
// it; none if there is neither. What is compressed stays so until libdw has opened the file.
struct bytes image_bytes(const struct image *image, const char *name, const char *packed_name);

// First section of that type with content, NULL if there is none.
Elf_Scn *image_section_of_type(const struct image *image, uint32_t type, GElf_Shdr *header);

bool image_has_dwarf(const struct image *image);

// Bytes of debug information and symbol tables, unpacked; 0 for a closed image.
uint64_t image_symbol_bytes(const struct image *image);

// Size of the file; 0 for a closed image.
uint64_t image_file_bytes(const struct image *image);

bool image_has_build_id(const struct image *image, const uint8_t *build_id, size_t bytes);

// True if some loadable executable segment covers the address; decides which address ranges are
// real: linkers leave those of removed functions behind at 0 and other odd places.
bool image_is_code(const struct image *image, uint64_t address);

struct symtab_entry {
    uint64_t start;
    uint64_t size;     // 0: unknown, reaches to the next entry
    const char *name;  // mangled; in the image, valid while it is open
    uint8_t rank;      // of names for the same address the highest is taken
    bool is_label;     // has no type: taken only where no function is
};

// All zero is an empty table.
struct symtab {
    struct symtab_entry *entries;
    size_t count;
    size_t capacity;
    bool is_sorted;
    bool has_data;  // set by the caller before the first symtab_add: objects count as functions do
};

// Adds the functions of the image's table of type SHT_SYMTAB or SHT_DYNSYM; `added` tells whether
// there were any. False only without memory.
bool symtab_add(struct symtab *symtab, const struct image *image, uint32_t type, bool *added);

// The function whose code contains the address, NULL if there is none. Sorts on first use.
const struct symtab_entry *symtab_find(struct symtab *symtab, uint64_t address);

void symtab_free(struct symtab *symtab);

#endif
