// SPDX-License-Identifier: Apache-2.0
// Puts libcairn-bare.so into a static program. The library
// needs no libc and no dynamic linker: what a loader has to do is to place its segments, to say
// where they are, and how its code comes to its thread-locals.
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

// Takes address space of the process for it; nothing may be done there yet.
bool bare_library_reserve(struct bare_library *library, struct caller *caller, struct error *error);
// The same, with the rights that each segment has; nothing is in it yet.
bool bare_library_map(struct bare_library *library, struct caller *caller, struct error *error);

// Maps the same from a file that has the image at its start, by its number in the process.
bool bare_library_map_file(struct bare_library *library, struct caller *caller, int64_t file,
                           struct error *error);

// Leads the library's code to its thread-locals: one of its functions (format/bare.h) is told their
// offset.
struct bare_locals {
    const char *function;
    int64_t offset;
};

// Gives the image its addresses.
bool bare_library_relocate(struct bare_library *library, const struct bare_locals *locals,
                           struct error *error);

bool bare_library_write(const struct bare_library *library, const struct remote *remote,
                        struct error *error);

#endif
