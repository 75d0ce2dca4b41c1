// SPDX-License-Identifier: Apache-2.0
// Where the recordings of one run go. One run is one path: a file while one process has recorded,
// a directory with a file for each as soon as there is a second.
#ifndef TOOL_WATCH_STORE_H
#define TOOL_WATCH_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/watch/memory.h"

struct store {
    char path[PATH_MAX];   // absolute; of the file or directory
    char first[NAME_MAX];  // name of the file at `path`, once it has to move into a directory
    bool is_taken;         // a file is at `path`
    bool is_directory;
};

// Chooses the path: `output` as the user gave it (NULL: NAME.PID.cairn here; an existing directory:
// in there), with a number before the suffix if something is there. Nothing is created; fails if
// the directory cannot be written.
bool store_choose(struct store *store, const char *output, const char *name, int pid,
                  struct error *error);

// Writes one process' recording; `file_name` is its name within a directory. `is_first` is that of
// the program that was started: it alone is written while the store is a plain file.
bool store_save(struct store *store, const struct memory *memory, const struct memory_end *end,
                const char *file_name, bool is_first, struct error *error);

// The path for a process that will have to write its recording itself.
void store_path_of(const struct store *store, const char *file_name, char *path, size_t size);

#endif
