// SPDX-License-Identifier: Apache-2.0
// The library notes size, time and inode of such a file when it sees its code first. That may be
// long after it was mapped, in a process that was attached to: then the kernel says whether the
// mapped file is still the one with that name.
#include "tool/watch/code_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/model/modules.h"
#include "tool/proc/mapped_file.h"
#include "tool/proc/maps.h"
#include "tool/proc/process.h"

// A section as far as it lies within the memory; the process may have damaged its table.
static uint8_t *find_section(const struct memory *memory, uint32_t kind, uint64_t *size) {
    const struct cairn_header *header = memory->header;
    for (uint32_t i = 0; i < header->section_count && i < CAIRN_SECTION_MAX; i++) {
        const struct cairn_section *section = &header->sections[i];
        uint64_t used = __atomic_load_n(&section->used_bytes, __ATOMIC_ACQUIRE);
        uint64_t offset = section->offset, capacity = section->capacity_bytes;
        if (section->kind != kind) continue;
        if (offset > memory->bytes || capacity > memory->bytes - offset) return NULL;
        *size = used < capacity ? used : capacity;
        return (uint8_t *)memory->header + offset;
    }
    return NULL;
}

// The path as the tool can open it, of a process that may have a root of its own.
static bool find_path(const struct memory *memory, const struct cairn_module *module,
                      char path[PATH_MAX]) {
    uint64_t size = 0;
    const char *strings = (const char *)find_section(memory, CAIRN_SECTION_STRINGS, &size);
    if (!strings || module->path >= size) return false;
    const char *text = strings + module->path;
    const size_t length = strnlen(text, size - module->path);
    const char *directory = memory->header->directory;
    bool is_relative = *text != '/';
    if (!length || length == size - module->path || *text == '[') return false;
    if (is_relative && *directory != '/') return false;
    int written = snprintf(path, PATH_MAX, "%.*s%s%.*s",
                           is_relative ? (int)strnlen(directory, CAIRN_TEXT_PATH) : 0, directory,
                           is_relative ? "/" : "", (int)length, text);
    return written < PATH_MAX;
}

// The process is there and maps a file at the address that has been removed or replaced.
static bool is_removed(pid_t pid, uint64_t address) {
    struct maps maps;
    struct mapping mapping;
    bool is_found = false;
    if (!maps_open(&maps, pid, "maps", NULL)) return false;
    while (!is_found && maps_next(&maps, &mapping))
        is_found = address >= mapping.start && address < mapping.end;
    maps_close(&maps);
    return is_found && mapping_is_deleted(&mapping);
}

static uint64_t code_of(const struct cairn_module *module) {
    return module->bias + module->segments[0].address;
}

static uint64_t hash_of(const struct memory *memory, pid_t pid, const struct cairn_module *module) {
    struct module_segment segments[CAIRN_MODULE_SEGMENTS];
    const struct code_file noted = {module->file_bytes, module->file_modified_ns,
                                    module->file_inode};
    struct code_file now;
    char path[PATH_MAX];
    uint32_t count = module->segment_count;
    uint64_t hash = CAIRN_CODE_OTHER;
    if (count > CAIRN_MODULE_SEGMENTS) count = CAIRN_MODULE_SEGMENTS;
    for (uint32_t i = 0; i < count; i++)
        segments[i] = (struct module_segment){module->segments[i].address, module->segments[i].size,
                                              module->segments[i].file_offset};
    if (!count || is_removed(pid, code_of(module))) return hash;
    if (!find_path(memory, module, path)) return CAIRN_CODE_UNKNOWN;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return CAIRN_CODE_UNKNOWN;
    if (code_file_of(file, &now) && code_file_is_same(&now, &noted))
        hash = code_file_hash(file, segments, count);
    close(file);
    return hash;
}

void code_files_note(const struct memory *memory, pid_t pid) {
    uint64_t size = 0;
    uint8_t *bytes = find_section(memory, CAIRN_SECTION_MODULES, &size);
    for (uint64_t at = 0; bytes && size - at >= sizeof(struct cairn_module);
         at += sizeof(struct cairn_module)) {
        struct cairn_module *module = (struct cairn_module *)(bytes + at);
        if (!__atomic_load_n(&module->is_ready, __ATOMIC_ACQUIRE) || module->build_id_bytes ||
            module->code_hash || !module->file_bytes)
            continue;
        uint64_t hash = hash_of(memory, pid, module);
        if (hash != CAIRN_CODE_UNKNOWN)
            __atomic_store_n(&module->code_hash, hash, __ATOMIC_RELAXED);
    }
}

// The program's own file is the one that the process maps, whatever has its path by now; so are
// those that were removed or replaced since, and all of a process that may be older than what is on
// the disk.
static int open_module(const struct memory *memory, pid_t pid, const struct cairn_module *module,
                       const char *path, bool is_gone) {
    const struct cairn_header *header = memory->header;
    bool is_program = !strncmp(path, header->executable, CAIRN_TEXT_PATH);
    bool is_older = is_gone || header->is_attached;
    int file = is_program || is_older ? mapped_file_open(pid, code_of(module)) : -1;
    return file >= 0 ? file : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

// Descriptors are for the processes first.
static bool is_worth_holding(const struct code_files *files, int file) {
    struct rlimit limit;
    struct stat one, other;
    if (getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)file >= limit.rlim_cur / 2) return false;
    if (fstat(file, &one) || !S_ISREG(one.st_mode)) return false;
    for (size_t i = 0; i < files->count; i++)
        if (!fstat(files->list[i].file, &other) && one.st_ino == other.st_ino &&
            one.st_dev == other.st_dev)
            return false;
    return true;
}

// Takes over the open file.
static void hold_file(struct code_files *files, const char *path, int file) {
    char *copy = is_worth_holding(files, file) ? strdup(path) : NULL;
    if (copy)
        files->list[files->count++] = (struct held_file){copy, file};
    else
        close(file);
}

static void hold(struct code_files *files, const struct memory *memory, pid_t pid,
                 const struct cairn_module *module) {
    char path[PATH_MAX];
    if (files->count == HELD_FILES_MAX || !find_path(memory, module, path)) return;
    const bool is_own = module_is_own(path);
    if (!is_own && !memory->header->is_attached) return;
    const bool is_gone = is_removed(pid, code_of(module));
    int file = is_own || is_gone ? open_module(memory, pid, module, path, is_gone) : -1;
    if (file >= 0) hold_file(files, path, file);
}

void code_files_hold_program(struct code_files *files, pid_t pid) {
    char path[PATH_MAX];
    if (files->count == HELD_FILES_MAX || !process_link(pid, "exe", path, sizeof path) ||
        !module_is_own(path))
        return;
    int file = process_open(pid, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0) hold_file(files, path, file);
}

void code_files_hold(struct code_files *files, const struct memory *memory, pid_t pid,
                     uint64_t *seen) {
    uint64_t size = 0;
    uint8_t *bytes = find_section(memory, CAIRN_SECTION_MODULES, &size);
    for (; bytes && *seen + sizeof(struct cairn_module) <= size;
         *seen += sizeof(struct cairn_module)) {
        const struct cairn_module *module = (const struct cairn_module *)(bytes + *seen);
        if (!__atomic_load_n(&module->is_ready, __ATOMIC_ACQUIRE)) return;  // the next time
        hold(files, memory, pid, module);
    }
}

void code_files_close(struct code_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->list[i].path);
        close(files->list[i].file);
    }
    files->count = 0;
}
