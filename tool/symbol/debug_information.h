// SPDX-License-Identifier: Apache-2.0
// The DWARF of a module's files: its own or its debug file's, with the file of shared debug
// information (dwz) that it refers to.
#ifndef TOOL_SYMBOL_DEBUG_INFORMATION_H
#define TOOL_SYMBOL_DEBUG_INFORMATION_H

#include <elfutils/libdw.h>

#include "tool/symbol/locate.h"

struct debug_information {
    const struct image *image;  // that has it; NULL: none has
    const char *path;
    Dwarf *dwarf;  // NULL: there is none, or it cannot be read
    struct image alternate;
    Dwarf *alternate_dwarf;  // NULL: none is referred to, or it is missing
    const char *note;        // what of it is missing; NULL: nothing
};

// `files` must outlive it. To be closed whatever it found.
void debug_information_open(struct debug_information *information, const struct located *files,
                            const struct symbol_options *options, struct string_pool *store);
void debug_information_close(struct debug_information *information);

#endif
