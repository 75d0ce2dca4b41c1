// SPDX-License-Identifier: Apache-2.0
// A file of its own: everybody else looks for whole names.
#include "tool/symbol/renamed.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// GCC and LLVM write the kind of change behind a dot. The cold part of a function is no function.
static bool is_made_of(const char *found, const char *name) {
    static const char *const parts[] = {".cold", ".part."};
    size_t length = strlen(name);
    if (strncmp(found, name, length) != 0 || found[length] != '.') return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(found + length, parts[i])) return false;
    return true;
}

static bool find_in_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name,
                          char *out, size_t size) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; data && i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
            continue;
        const char *found = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (!found || !is_made_of(found, name)) continue;
        snprintf(out, size, "%s", found);
        return true;
    }
    return false;
}

bool renamed_find(const char *path, const char *name, char *out, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    elf_version(EV_CURRENT);
    Elf *elf = file >= 0 ? elf_begin(file, ELF_C_READ_MMAP, NULL) : NULL;
    Elf_Scn *section = NULL;
    bool is_found = false;
    while (elf && !is_found && (section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
            is_found = find_in_table(elf, section, &header, name, out, size);
    }
    elf_end(elf);
    if (file >= 0) close(file);
    return is_found;
}
