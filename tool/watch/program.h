// SPDX-License-Identifier: Apache-2.0
// Checks a program before it is started: where it is, and whether a library can be preloaded into
// it.
//
// And which version of Python it is, from its file.
#ifndef TOOL_WATCH_PROGRAM_H
#define TOOL_WATCH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"

#define PROGRAM_PATH_MAX 4096

struct program {
    char path[PROGRAM_PATH_MAX];     // what will be executed
    char image[PROGRAM_PATH_MAX];    // the ELF file: the same, a script's interpreter, or what a
                                     // dynamic linker was given
    char missing[PROGRAM_PATH_MAX];  // the dynamic linker or interpreter that is not there; or ""
    const char *obstacle;            // why it cannot be recorded, a clause; NULL if it can
    const char *own_allocator;       // allocator linked into it, or NULL
    bool is_linker;                  // a dynamic linker is executed, which starts the program
    bool is_static;                  // the kernel starts it without a dynamic linker
    bool records_itself;             // static, with our runtime linked in: nothing to preload
    bool refuses_preload;            // it would not start with the library, or complain
    bool brings_operator_new;        // linked to a shared allocator with its own operator new
};

// Finds `name` as execvp would. False: not found, or not executable; `status` is then 127 or
// 126.
bool program_find(const char *name, struct program *program, int *status, struct error *error);

// The same of a command. Where that is a dynamic linker with a program as a word ("ld.so ./p"), the
// image is that program.
bool program_find_command(char *const words[], struct program *program, int *status,
                          struct error *error);

// The name of what runs: that of the first word, or of what a dynamic linker was given.
const char *program_called(const struct program *program, const char *word);

// The part of a path after the last slash.
const char *program_base_name(const char *path);

// Version of the interpreter that an ELF file is or is linked to, as Py_Version without its
// lower half; 0: none, or it does not say.
uint32_t python_of_image(const char *path);

// Whether that interpreter is a free-threaded build, which refuses PYTHONMALLOC=malloc.
bool python_is_free_threaded(const char *path);

// Says whether a library is mapped into the process that brings an allocator with operator new and
// delete of its own.
bool program_has_operators(pid_t pid);

#endif
