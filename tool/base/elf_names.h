// SPDX-License-Identifier: Apache-2.0
// A few names looked for among the hundreds of thousands of a symbol table. Of nearly every other
// name the first three bytes say that it is none of them; only the rest is compared.
#ifndef TOOL_BASE_ELF_NAMES_H
#define TOOL_BASE_ELF_NAMES_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_NAMES_START_BYTES = 3, ELF_NAMES_STARTS = 4096 };

struct elf_names {
    const char *text;  // of the table at hand; ends with a zero
    size_t bytes;
    bool starts[ELF_NAMES_STARTS];  // by elf_names_slot
};

static inline unsigned elf_names_slot(const char *name) {
    const unsigned factor = 31;
    unsigned slot = 0;
    for (unsigned i = 0; i < ELF_NAMES_START_BYTES && name[i]; i++)
        slot = slot * factor + (unsigned char)name[i];
    return slot % ELF_NAMES_STARTS;
}

// Names that begin as this one does are wanted. It has three bytes at least.
void elf_names_want(struct elf_names *names, const char *name);

// Which section of strings the table at hand refers to (sh_link). Without one no name is found.
void elf_names_open(struct elf_names *names, Elf *elf, size_t section);
// The same by its bytes; NULL: it has none.
void elf_names_take(struct elf_names *names, const Elf_Data *data);

// The name at an offset of these strings; NULL if there is none, or it is not wanted for certain.
static inline const char *elf_names_at(const struct elf_names *names, uint64_t offset) {
    if (!names->text || offset >= names->bytes) return NULL;
    const char *name = names->text + offset;
    return names->starts[elf_names_slot(name)] ? name : NULL;
}

#endif
