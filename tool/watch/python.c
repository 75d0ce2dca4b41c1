// SPDX-License-Identifier: Apache-2.0
// A shared libpython says its version by its name, an interpreter in one piece by the constant
// Py_Version (from 3.11 on), or else by the name of its file.
#include "tool/watch/python.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAJOR_SHIFT = 24, MINOR_SHIFT = 16, PART_MAX = 255 };

// The version in "python3.11" behind `stem`; 0: there is none.
static uint32_t version_in_name(const char *name, const char *stem) {
    unsigned major = 0, minor = 0;
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0) return 0;
    if (sscanf(name + length, "%3u.%3u", &major, &minor) != 2) return 0;
    if (!major || major > PART_MAX || minor > PART_MAX) return 0;
    return major << MAJOR_SHIFT | minor << MINOR_SHIFT;
}

static uint32_t version_of_libraries(Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn entry;
    uint32_t version = 0;
    for (int i = 0; !version && data && gelf_getdyn(data, i, &entry) && entry.d_tag; i++) {
        if (entry.d_tag != DT_NEEDED) continue;
        const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (name) version = version_in_name(name, "libpython");
    }
    return version;
}

// The constant's value, as the file has it.
static uint32_t value_of(Elf *elf, const GElf_Sym *symbol) {
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    Elf_Data *data = section && gelf_getshdr(section, &header) ? elf_getdata(section, NULL) : NULL;
    uint64_t value = 0, at = data ? symbol->st_value - header.sh_addr : 0;
    if (!data || !data->d_buf || at > data->d_size || data->d_size - at < sizeof value) return 0;
    memcpy(&value, (const char *)data->d_buf + at, sizeof value);
    const uint32_t upper = 0xffff0000u;
    return (uint32_t)value & upper;
}

// Of an exported Py_Version; or, if there is an interpreter without it, of the file's name.
static uint32_t version_of_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                                   const char *name) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    bool is_interpreter = false;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF) continue;
        const char *text = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (text && !strcmp(text, "Py_Version")) return value_of(elf, &symbol);
        if (text && !strcmp(text, "Py_GetVersion")) is_interpreter = true;
    }
    return is_interpreter ? version_in_name(name, "python") : 0;
}

static uint32_t version_of_elf(Elf *elf, const char *name) {
    uint32_t version = 0;
    Elf_Scn *section = NULL;
    while (!version && (section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type == SHT_DYNAMIC) version = version_of_libraries(elf, section, &header);
        if (header.sh_type == SHT_DYNSYM) version = version_of_symbols(elf, section, &header, name);
    }
    return version;
}

uint32_t python_of_image(const char *path) {
    char real[PATH_MAX];
    if (!realpath(path, real)) return 0;
    int file = open(real, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    const char *slash = strrchr(real, '/');
    bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
    uint32_t version = is_elf ? version_of_elf(elf, slash ? slash + 1 : real) : 0;
    if (elf) elf_end(elf);
    close(file);
    return version;
}
