// SPDX-License-Identifier: Apache-2.0
// The files that code of recorded processes comes from, as long as they are certainly there. Those
// of the program's own modules are held open: a program that is rebuilt while it runs keeps its
// names. Of modules without a build-id the code is hashed, so that names of another file are never
// taken for theirs.
#ifndef TOOL_WATCH_CODE_FILES_H
#define TOOL_WATCH_CODE_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include "tool/model/modules.h"
#include "tool/watch/memory.h"

enum { HELD_FILES_MAX = 16 };

struct code_files {
    struct held_file list[HELD_FILES_MAX];
    size_t count;
};

// Holds the files of the process' own modules, of those that it has loaded since it had `*seen`.
// What there is no room for, or no descriptor, is left.
void code_files_hold(struct code_files *files, const struct memory *memory, pid_t pid,
                     uint64_t *seen);
// Holds the file that the process executes, which waits meanwhile: programs remove, move or replace
// their own file as they begin, or have none with a name.
void code_files_hold_program(struct code_files *files, pid_t pid);
void code_files_close(struct code_files *files);

// Notes the hashes of modules that have none yet (cairn_module.code_hash). As soon as possible, and
// once more at the end: a file that was written meanwhile is noted to be another one.
void code_files_note(const struct memory *memory, pid_t pid);

#endif
