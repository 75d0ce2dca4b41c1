// SPDX-License-Identifier: Apache-2.0
// Loads cairn's library into a process, from a file in memory that the process makes itself: so it
// does not matter which files the process can see.
#ifndef TOOL_ATTACH_LOAD_H
#define TOOL_ATTACH_LOAD_H

#include "tool/attach/session.h"

// Makes a memfd in the process, for caller_close; `here` is a descriptor of this one for the same.
bool load_make_file(struct attach *attach, struct caller *caller, const char *name, bool is_library,
                    int64_t *there, int *here, struct error *error);

// Reads the library's file, before anything is stopped.
bool load_read_library(struct attach *attach, struct error *error);

// Loads the library by the process' own dlopen; `handle` is what that returned.
bool load_library(struct attach *attach, struct caller *caller, uint64_t *handle,
                  struct error *error);

// Returns how much memory the process has locked, in KiB.
uint64_t load_locked_kib(const struct attach *attach);

// Refuses a process that locks all memory which is mapped in it: the kernel would fill and lock the
// address space that the library maps as it starts. `before_kib` was locked before the first call
// of a function, for which memory is mapped; nothing is loaded yet.
bool load_check_locked(const struct attach *attach, uint64_t before_kib, struct error *error);

// Renames it in the dynamic linker's list, by its struct link_map: debuggers and the program's own
// crash handlers open the files that are named there, and the descriptor by which it was opened is
// somebody else's by then, perhaps a pipe that never answers. The new name is no longer than the
// old one, whose bytes it takes.
void load_rename(const struct attach *attach, uint64_t link_map);

// Calls one of the functions that the library names in cairn_attachment; what it returns becomes
// the error.
bool load_call(struct caller *caller, uint64_t function,
               const uint64_t arguments[REGISTERS_ARGUMENTS], struct error *error);

// Returns where the thread's errno is, and what it holds; 0 after an error was filled.
uint64_t load_find_errno(struct attach *attach, struct caller *caller, int *value,
                         struct error *error);

#endif
