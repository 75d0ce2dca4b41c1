// SPDX-License-Identifier: Apache-2.0
// Tells the library that the tool puts into a static program (libcairn-bare.so) what is around it,
// before the program's first instruction. It lies in the library's data under the exported name
// cairn_bare. A dynamic linker and a libc would know it; there is neither.
#ifndef FORMAT_BARE_H
#define FORMAT_BARE_H

#include <stdint.h>

// Stands among the functions if the allocator is glibc's, whose headers before blocks are known.
#define CAIRN_BARE_GLIBC "gnu_get_libc_version"

enum {
    CAIRN_BARE_AUXILIARY = 48,
    CAIRN_BARE_VARIABLES = 32,
    CAIRN_BARE_FUNCTIONS = 24,
    CAIRN_BARE_NAME_BYTES = 24,
};

// A function of the program that leads to a hook, and where its first instructions are now.
struct cairn_bare_function {
    char name[CAIRN_BARE_NAME_BYTES];
    uint64_t moved;
};

struct cairn_bare {
    uint64_t bias;                                // address = bias + virtual address in the file
    uint64_t segments, segment_count;             // the executable's program headers, with one for
                                                  // the index of its unwind information
    uint64_t auxiliary[CAIRN_BARE_AUXILIARY][2];  // as the kernel gave it; 0 ends
    uint64_t variables[CAIRN_BARE_VARIABLES];     // addresses of NAME=VALUE; 0 ends
    struct cairn_bare_function functions[CAIRN_BARE_FUNCTIONS];
};

#endif
