// SPDX-License-Identifier: Apache-2.0
// Which file code came from, where no build-id tells: the hash of its executable segments decides;
// size, time and inode of the file as it was when it was loaded only spare the hashing.
#ifndef TOOL_MODEL_CODE_FILE_H
#define TOOL_MODEL_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

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

#endif
