// SPDX-License-Identifier: Apache-2.0
// The process as it was started: environment, arguments, working directory. Read without libc's
// getenv, which other preloads replace. Strings stay the program's; nothing is changed.
#ifndef RUNTIME_SYS_ENVIRONMENT_H
#define RUNTIME_SYS_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// False while libc has not been started yet, so that there is no environment to read.
bool environment_is_ready(void);

// What a constructor was called with, for one that runs before libc's. Only glibc does that, and
// tells it; where libc knows the environment, that counts. NULL: no longer.
void environment_lend(char **variables);

// From now on variables come from here: NAME=VALUE, each ends in NUL, an empty one ends them. For a
// process that was attached to, whose environment is older than that.
void environment_give(const char *words);

// Adds variables in the same form, which count where the environment lacks them.
void environment_supplement(const char *words);

// True where variables were given so.
bool environment_is_given(void);

// The value of CAIRN_… variable `name`, or NULL.
const char *environment_get(const char *name);

// Fills `text` with at most `size` bytes of a file of /proc/self; the number read.
size_t environment_read(const char *path, char *text, size_t size);

// The arguments as /proc/self/cmdline has them, and without /proc as they lie on the stack, in at
// most `size` bytes.
void environment_command(char *text, size_t size);

// Tells that no dynamic linker is named in what the kernel executed: that is a static program, or
// the dynamic linker itself, which was given the program to start.
bool environment_is_by_linker(void);

// Finds the path of the file that is mapped at the address; "" and false if there is none, or it
// does not fit.
bool environment_mapped_path(uintptr_t address, char *path, size_t size);

// The program's file: the link of /proc/self/exe, that of the mapping where the dynamic linker was
// given the program, and without /proc what the kernel was asked to execute; the working directory.
// "" if unreadable.
void environment_executable(char *path, size_t size);
void environment_directory(char *path, size_t size);

#endif
