// SPDX-License-Identifier: Apache-2.0
// Finds the place of the executable of a running process. The kernel says it in the auxiliary
// vector and in /proc/PID/exe, but of a program that a dynamic linker was given as a word ("ld.so
// ./prog", as bundles do) it knows the linker alone: the program is then the first of that linker's
// list.
#ifndef TOOL_ATTACH_PROGRAM_PLACE_H
#define TOOL_ATTACH_PROGRAM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/proc/remote.h"

struct program_place {
    uint64_t headers, count;  // its program headers
    uint64_t linker;          // address that the dynamic linker was mapped at; 0: it has none
    uint64_t debug;           // of the linker's struct r_debug; 0: it is not ready yet
    uint64_t bias;            // if is_given: address = bias + virtual address in the file
    bool is_given;            // the linker was given the program
};

// False: the process has ended.
bool program_place_find(struct program_place *place, const struct remote *remote);

// Opens its file; -1: it cannot be opened.
int program_place_open(const struct program_place *place, const struct remote *remote);

#endif
