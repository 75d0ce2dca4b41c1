// SPDX-License-Identifier: Apache-2.0
// The file of the executable in which entries of an allocator are searched.
#ifndef TOOL_ATTACH_EXECUTABLE_H
#define TOOL_ATTACH_EXECUTABLE_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/attach/code.h"
#include "tool/attach/program_place.h"
#include "tool/proc/remote.h"

struct executable {
    int file;
    Elf *elf;
    pid_t pid;                   // 0: of no process
    struct program_place place;  // of that
};

// Opens the executable of a process, or a file. False: it is no ELF file of 64 bits; it is to be
// closed in any case.
bool executable_open(struct executable *executable, const struct remote *remote);
bool executable_open_file(struct executable *executable, const char *path);
void executable_close(struct executable *executable);

// The load bias of the executable; 0 for a file. False: the process has ended.
bool executable_bias(const struct executable *executable, uint64_t *bias);

// Where its first segment begins and its last one ends, and where it begins to execute. `high` is
// raised if it is less.
void executable_extent(Elf *elf, uint64_t bias, uint64_t *low, uint64_t *high,
                       uint64_t *entry_point);

// Tells if the kernel starts it without a dynamic linker.
bool executable_is_static(Elf *elf);

// The code of a function as the file has it: in memory another tool's jumps may lie over it.
bool executable_code(Elf *elf, uint64_t bias, uint64_t address, uint64_t size,
                     struct code_function *function);

#endif
