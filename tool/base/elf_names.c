// SPDX-License-Identifier: Apache-2.0
#include "tool/base/elf_names.h"

#include <string.h>

void elf_names_want(struct elf_names *names, const char *name) {
    names->starts[elf_names_slot(name)] = true;
}

void elf_names_take(struct elf_names *names, const Elf_Data *data) {
    names->text = data ? data->d_buf : NULL;
    // a damaged table may end within a name
    const char *end = names->text ? memrchr(names->text, 0, data->d_size) : NULL;
    names->bytes = end ? (size_t)(end - names->text) + 1 : 0;
}

void elf_names_open(struct elf_names *names, Elf *elf, size_t section) {
    Elf_Scn *strings = elf_getscn(elf, section);
    GElf_Shdr header;
    bool is_text = strings && gelf_getshdr(strings, &header) && header.sh_type == SHT_STRTAB;
    elf_names_take(names, is_text ? elf_getdata(strings, NULL) : NULL);
}
