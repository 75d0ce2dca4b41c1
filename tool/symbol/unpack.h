// SPDX-License-Identifier: Apache-2.0
// Sections of ELF files that are compressed by zstd (ELFCOMPRESS_ZSTD of the generic ABI), which
// libelf unpacks from 0.189 on; Debian 12 has 0.188.
#ifndef TOOL_SYMBOL_UNPACK_H
#define TOOL_SYMBOL_UNPACK_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

// A copy of the file in memory (free) in which these sections are uncompressed. False: it has none,
// or they cannot be unpacked; then the file is as it is.
bool unpack_zstd(Elf *elf, void **memory, size_t *bytes);

#endif
