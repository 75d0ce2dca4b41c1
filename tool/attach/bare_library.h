// SPDX-License-Identifier: Apache-2.0
// Puts libcairn-bare.so into a static program that stands at its first instruction. The library
// needs no libc and no dynamic linker: what a loader has to do is to place its segments, to say
// where they are, and to give its thread-locals an offset from the thread pointer.
#ifndef TOOL_ATTACH_BARE_LIBRARY_H
#define TOOL_ATTACH_BARE_LIBRARY_H

#include <gelf.h>

#include "tool/attach/call.h"

struct bare_library {
    int file;
    Elf *elf;
    uint8_t *image;         // as it lies in memory
    uint64_t bytes, align;  // of the image
    GElf_Phdr locals;       // its thread-locals
    uint64_t base;          // where the process has it
};

// False, with the reason, if it is not the library of this tool.
bool bare_library_open(struct bare_library *library, const char *path, struct error *error);
void bare_library_close(struct bare_library *library);

// Something that the library exports, in the image; NULL: it does not.
void *bare_library_data(const struct bare_library *library, const char *name, size_t bytes);
// Returns where the process has it; 0: the library does not export it.
uint64_t bare_library_address(const struct bare_library *library, const char *name);

// Takes address space of the process, with the rights that each segment has; nothing is in it yet.
bool bare_library_map(struct bare_library *library, struct caller *caller, struct error *error);

// Gives the image its addresses. `locals_offset`: of its thread-locals from the thread pointer.
bool bare_library_relocate(struct bare_library *library, int64_t locals_offset,
                           struct error *error);

bool bare_library_write(const struct bare_library *library, const struct remote *remote,
                        struct error *error);

#endif
