// SPDX-License-Identifier: Apache-2.0
// The recording's modules, and which of them an address belongs to.
//
// A library that was unloaded and loaded again has several entries; `same_as` leads to the first of
// them, so that their code counts as the same. A plain address belongs to the first entry of the
// table that covers it (format/format.h).
//
// Which file code came from, where no build-id tells: the hash of its executable segments decides;
// size, time and inode of the file as it was when it was loaded only spare the hashing.
#ifndef TOOL_MODEL_MODULES_H
#define TOOL_MODEL_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/model/reader.h"

// Executable code of a module's file.
struct module_segment {
    uint64_t address, size, file_offset;  // address: virtual address in the ELF file
};

// A file as it was at one time; all 0: unknown.
struct code_file {
    uint64_t bytes, modified_ns, inode;
};

// A file that is held open, so that it can be read when another one has taken its place.
struct held_file {
    char *path;  // that the program knows it by
    int file;
};

// Of an open file; false if the kernel does not say.
bool code_file_of(int file, struct code_file *out);
bool code_file_is_same(const struct code_file *a, const struct code_file *b);

// Hash of what an open file has of the segments; never CAIRN_CODE_UNKNOWN or CAIRN_CODE_OTHER.
// CAIRN_CODE_UNKNOWN: it cannot be read, or there is none.
uint64_t code_file_hash(int file, const struct module_segment *segments, size_t count);

#define MODULE_NONE UINT32_MAX

// A module of the program that was recorded, not of the system: its path is outside /usr (but for
// /usr/local), /lib and the like, and the stores of Nix and Guix. Names such as "[vdso]" are not.
bool module_is_own(const char *path);
// Cairn's own library, in a process that was attached to: nobody has a file of it.
bool module_is_cairn(const char *path);
// The same, or preloaded from a file.
bool module_is_library(const char *path);

struct module {
    const char *path;  // "" if unknown; belongs to the recording
    uint64_t start, end;
    uint64_t bias;  // address = bias + virtual address in the ELF file
    uint64_t loaded_ns, unloaded_ns;
    uint8_t build_id[CAIRN_BUILD_ID_MAX];
    uint32_t build_id_bytes;  // 0: none
    uint32_t same_as;         // first entry of the same file, or its own index
    uint64_t identity;        // hash of the build-id, of the code, or else of the path; the same in
                              // every run
    struct code_file file;    // without a build-id: as it was when the code was seen
    uint64_t code_hash;       // the same: of its code, or CAIRN_CODE_*
    uint64_t code_key;        // the same: tells the file from all others; 0: unknown
    uint32_t segment_count;
    struct module_segment segments[CAIRN_MODULE_SEGMENTS];
    bool is_valid;  // false: entry not finished or damaged
};

struct module_range {
    uint64_t start, end;
    uint32_t module;
};

struct module_map {
    struct module *modules;  // same indexes as in the recording
    size_t count;
    struct module_range *ranges;  // ascending, disjoint
    size_t range_count;
};

// The build-id in lower-case hex; "" if there is none.
#define MODULE_BUILD_ID_TEXT (2 * CAIRN_BUILD_ID_MAX + 1)
void module_build_id_text(const struct module *module, char text[MODULE_BUILD_ID_TEXT]);

// The module of the program that was started; MODULE_NONE: it is not among them.
uint32_t module_of_program(const struct module_map *map, const char *executable);

// False without memory.
bool module_map_build(struct recording *recording, struct module_map *map, struct error *error);
void module_map_free(struct module_map *map);

// Module of an address, or MODULE_NONE.
uint32_t module_map_find(const struct module_map *map, uint64_t address);

#endif
