// SPDX-License-Identifier: Apache-2.0
// Kinds of relocations of words through which a module calls functions of others, by the supplement
// of the System V ABI for each processor.
#ifndef FORMAT_RELOCATIONS_H
#define FORMAT_RELOCATIONS_H

#include <elf.h>

#if defined(__aarch64__)
enum {
    RELOCATION_JUMP_SLOT = R_AARCH64_JUMP_SLOT,
    RELOCATION_GLOBAL = R_AARCH64_GLOB_DAT,
    RELOCATION_WORD = R_AARCH64_ABS64,
};
#else
enum {
    RELOCATION_JUMP_SLOT = R_X86_64_JUMP_SLOT,
    RELOCATION_GLOBAL = R_X86_64_GLOB_DAT,
    RELOCATION_WORD = R_X86_64_64,
};
#endif

#endif
