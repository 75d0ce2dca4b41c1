// SPDX-License-Identifier: Apache-2.0
// Several names for one address are common in C libraries (malloc, __libc_malloc, __malloc): the
// one with the fewest leading underscores is what people call it, then the most public one.
#include "tool/symbol/symtab.h"

#include <stdlib.h>
#include <string.h>

#define UNDERSCORES_MAX 3
#define LOOK_BACK_MAX 64  // symbols that may start inside a function before its end

static uint8_t name_rank(const char *name, const GElf_Sym *symbol) {
    unsigned underscores = 0;
    while (underscores < UNDERSCORES_MAX && name[underscores] == '_') underscores++;
    if (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2)) underscores = 0;
    unsigned publicity = GELF_ST_BIND(symbol->st_info) == STB_GLOBAL ? 2 : 0;
    if (GELF_ST_BIND(symbol->st_info) == STB_WEAK) publicity = 1;
    return (uint8_t)((UNDERSCORES_MAX - underscores) * 4 + publicity);
}

// Labels of assembly code have no type; mapping symbols ("$x") and local labels (".L1") are none.
static bool is_function(const struct image *image, const GElf_Sym *symbol, const char *name) {
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || !name[0]) return false;
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (type == STT_FUNC || type == STT_GNU_IFUNC) return true;
    return type == STT_NOTYPE && name[0] != '$' && name[0] != '.' &&
           image_is_code(image, symbol->st_value);
}

static bool is_object(const GElf_Sym *symbol) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
           GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

static bool symtab_reserve(struct symtab *symtab, size_t more) {
    if (symtab->capacity - symtab->count >= more) return true;
    size_t capacity = symtab->count + more;
    struct symtab_entry *entries = reallocarray(symtab->entries, capacity, sizeof *entries);
    if (!entries) return false;
    symtab->entries = entries;
    symtab->capacity = capacity;
    return true;
}

bool symtab_add(struct symtab *symtab, const struct image *image, uint32_t type, bool *added) {
    *added = false;
    GElf_Shdr header;
    Elf_Scn *section = image_section_of_type(image, type, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t entry_bytes = gelf_fsize(image->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (!data || !entry_bytes) return true;
    size_t count = data->d_size / entry_bytes;
    if (count > INT32_MAX || !symtab_reserve(symtab, count)) return count > INT32_MAX;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) continue;
        const char *name = elf_strptr(image->elf, header.sh_link, symbol.st_name);
        bool is_data = symtab->has_data && is_object(&symbol);
        if (!name || (!is_data && !is_function(image, &symbol, name))) continue;
        symtab->entries[symtab->count++] =
            (struct symtab_entry){symbol.st_value, symbol.st_size, name, name_rank(name, &symbol),
                                  GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE};
        *added = true;
    }
    symtab->is_sorted = false;
    return true;
}

static int entry_compare(const void *left, const void *right) {
    const struct symtab_entry *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->is_label != b->is_label) return a->is_label ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return strcmp(b->name, a->name);
}

// Sorts, and lets functions of unknown size reach to the next symbol.
static void symtab_sort(struct symtab *symtab) {
    qsort(symtab->entries, symtab->count, sizeof *symtab->entries, entry_compare);
    symtab->is_sorted = true;
    uint64_t next_start = UINT64_MAX;
    for (size_t i = symtab->count; i > 0; i--) {
        struct symtab_entry *entry = &symtab->entries[i - 1];
        if (i < symtab->count && symtab->entries[i].start != entry->start)
            next_start = symtab->entries[i].start;
        if (!entry->size) entry->size = next_start - entry->start;
    }
}

const struct symtab_entry *symtab_find(struct symtab *symtab, uint64_t address) {
    if (!symtab->count) return NULL;
    if (!symtab->is_sorted) symtab_sort(symtab);
    size_t low = 0, high = symtab->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symtab->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct symtab_entry *label = NULL;
    for (size_t i = low; i > 0 && low - i < LOOK_BACK_MAX; i--) {
        const struct symtab_entry *entry = &symtab->entries[i - 1];
        if (address - entry->start >= entry->size) continue;
        if (!entry->is_label) return entry;
        if (!label) label = entry;
    }
    return label;
}

void symtab_free(struct symtab *symtab) {
    free(symtab->entries);
    *symtab = (struct symtab){0};
}
