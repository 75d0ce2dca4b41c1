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
    CAIRN_BARE_MAPPINGS = 4,
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
    // In a program that ran already:
    uint64_t tid_offset;  // of libc's number of a thread, from its thread pointer
    // Memory that goes with the library: address, bytes; 0 ends. The tool's is first.
    uint64_t mappings[CAIRN_BARE_MAPPINGS][2];
};

// Functions by which the library's code asks for thread-locals (runtime/bare/locals.c): each thread
// has them where the descriptor says, or it is found by its thread pointer.
#define CAIRN_BARE_LOCALS_GIVEN "cairn_bare_given"
#define CAIRN_BARE_LOCALS_FOUND "cairn_bare_found"
// Called once in a program that ran already; returns enum cairn_attachment_result.
#define CAIRN_BARE_BEGIN "cairn_bare_begin"

#endif
