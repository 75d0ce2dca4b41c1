// SPDX-License-Identifier: Apache-2.0
#include "tool/query/removed_files.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/proc/mapped_file.h"
#include "tool/query/name_options.h"

static bool is_removed(const char *path) {
    static const char removed[] = " (deleted)";
    const size_t length = strlen(path), end = sizeof removed - 1;
    return length > end && !strcmp(path + length - end, removed);
}

static bool is_elf(int file) {
    char magic[SELFMAG];
    return pread(file, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           !memcmp(magic, ELFMAG, sizeof magic);
}

static bool is_known(const struct removed_files *files, const char *path) {
    for (size_t i = 0; i < files->count; i++)
        if (!strcmp(files->list[i].path, path)) return true;
    return false;
}

void removed_files_hold(struct removed_files *files, pid_t pid, const struct core_image *core) {
    struct symbol_options *options = name_options_symbols();
    files->count = 0;
    if (options->held_count) return;  // by who records the process
    for (size_t i = 0; i < core->files.count && files->count < REMOVED_FILES_MAX; i++) {
        const struct core_file *of = &core->files.items[i];
        if (of->offset || !is_removed(of->path) || is_known(files, of->path)) continue;
        int file = mapped_file_open(pid, of->start);
        char *path = file >= 0 && is_elf(file) ? strdup(of->path) : NULL;
        if (path)
            files->list[files->count++] = (struct held_file){path, file};
        else if (file >= 0)
            close(file);
    }
    options->held = files->list;
    options->held_count = files->count;
}

void removed_files_close(struct removed_files *files) {
    struct symbol_options *options = name_options_symbols();
    if (options->held == files->list) {
        options->held = NULL;
        options->held_count = 0;
    }
    for (size_t i = 0; i < files->count; i++) {
        free(files->list[i].path);
        close(files->list[i].file);
    }
    files->count = 0;
}
