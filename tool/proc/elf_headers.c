// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/elf_headers.h"

#include <string.h>

size_t elf_headers_read(const struct memory_reader *reader, uint64_t address, uint64_t count,
                        Elf64_Phdr *headers) {
    if (count > ELF_HEADERS_MAX) count = ELF_HEADERS_MAX;
    bool is_read =
        address && memory_read(reader, address, headers, (size_t)count * sizeof *headers);
    return is_read ? (size_t)count : 0;
}

size_t elf_headers_at(const struct memory_reader *reader, uint64_t start, Elf64_Phdr *headers) {
    Elf64_Ehdr header;
    bool is_elf = memory_read(reader, start, &header, sizeof header) &&
                  !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_phentsize == sizeof *headers;
    return is_elf ? elf_headers_read(reader, start + header.e_phoff, header.e_phnum, headers) : 0;
}
