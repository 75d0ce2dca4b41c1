// SPDX-License-Identifier: Apache-2.0
// The code of the allocator elsewhere than in its entries.
#include "tool/attach/entries.h"

#include <gelf.h>
#include <string.h>

#include "tool/attach/entry_names.h"
#include "tool/attach/executable.h"

// What lies between the allocator's entries is the allocator's, and so is every local function of a
// source file that has one there.
struct search_parts {
    struct entries *entries;
    uint64_t bias, main;
    size_t file_start;   // number of the first part of the file that is being read
    bool has_inner;      // one of them lies between the entries
    bool is_file_named;  // behind a file without a name come hidden functions of all files
};

static bool is_between(const struct entries *entries, uint64_t pc) {
    return pc >= entries->heart && pc < entries->heart_end;
}

static void end_file(struct search_parts *search) {
    if (!search->has_inner || !search->is_file_named)
        search->entries->parts.count = search->file_start;
    search->file_start = search->entries->parts.count;
    search->has_inner = false;
}

static bool look_at_part(struct search_parts *search, const Elf64_Sym *symbol, const char *name) {
    uint64_t start = symbol->st_value + search->bias;
    if (ELF64_ST_TYPE(symbol->st_info) == STT_FILE) {
        end_file(search);
        search->is_file_named = *name;
    }
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) return true;
    if (!strcmp(name, "main")) search->main = start;
    if (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) return true;
    struct entry_part *part = array_push(&search->entries->parts);
    if (!part) return false;
    *part = (struct entry_part){start, start + symbol->st_size};
    if (is_between(search->entries, start)) search->has_inner = true;
    return true;
}

// False: there is no table of them, or no memory.
static bool look_at_parts(struct search_parts *search, Elf *elf) {
    bool is_ok = false;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        const Elf64_Sym *symbols = data ? data->d_buf : NULL;
        size_t count = symbols ? data->d_size / sizeof *symbols : 0;
        is_ok = count > 0;
        for (size_t i = 0; is_ok && i < count; i++) {
            const char *name = elf_strptr(elf, header.sh_link, symbols[i].st_name);
            is_ok = look_at_part(search, &symbols[i], name ? name : "");
        }
        end_file(search);
    }
    return is_ok;
}

bool entries_find_parts(struct entries *entries, const struct remote *remote, struct error *error) {
    struct search_parts search = {.entries = entries};
    struct executable image;
    entries->heart = UINT64_MAX;
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        uint64_t end = entry->address + entry->size;
        if (entry->address < entries->heart) entries->heart = entry->address;
        if (end > entries->heart_end) entries->heart_end = end;
    }
    bool is_read = executable_open(&image, remote) && executable_bias(&image, &search.bias) &&
                   look_at_parts(&search, image.elf);
    executable_close(&image);
    if (!is_read) return error_set(error, "its symbols were taken away (strip)");
    return !is_between(entries, search.main) ||
           error_set(error, "its code lies among the program's own");
}

bool entries_may_hold(const struct entries *entries, uint64_t pc, const char *name) {
    const char *rest = name;
    if (is_between(entries, pc)) return true;
    for (size_t i = 0; i < entries->parts.count; i++)
        if (pc >= entries->parts.items[i].start && pc < entries->parts.items[i].end) return true;
    if (!name) return pc >= entries->low && pc < entries->high;
    return entry_family_of(&rest) != FAMILY_PLAIN || strstr(name, "_mi_") == name ||
           strstr(name, "tcmalloc");
}
