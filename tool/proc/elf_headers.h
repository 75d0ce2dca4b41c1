// SPDX-License-Identifier: Apache-2.0
// Program headers of an ELF file that is mapped, in memory of any kind.
#ifndef TOOL_PROC_ELF_HEADERS_H
#define TOOL_PROC_ELF_HEADERS_H

#include <elf.h>

#include "tool/proc/memory_reader.h"

#define ELF_HEADERS_MAX 64  // more than any real file has; further ones are left out

// Those of the file whose first page is at `start`; returns how many were read. 0: there is no
// 64-bit ELF file.
size_t elf_headers_at(const struct memory_reader *reader, uint64_t start, Elf64_Phdr *headers);

// `count` of them, at `address`.
size_t elf_headers_read(const struct memory_reader *reader, uint64_t address, uint64_t count,
                        Elf64_Phdr *headers);

#endif
