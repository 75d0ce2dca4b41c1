// SPDX-License-Identifier: Apache-2.0
// Bytes that a recording is read from: a file or a block of memory.
#ifndef TOOL_MODEL_SOURCE_H
#define TOOL_MODEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/base/error.h"

struct source {
    int descriptor;        // -1: memory
    const uint8_t *bytes;  // of memory
    uint64_t size;
    uint64_t disk_bytes;  // what a file takes; less than its size if it is sparse
};

bool source_open(const char *path, struct source *source, struct error *error);
void source_close(struct source *source);

// Up to `size` bytes into `out`; returns how many there were.
size_t source_read(const struct source *source, uint64_t offset, void *out, size_t size);

// Zeroed memory of its own that takes room as it is written to, for munmap; NULL with an error.
void *source_room(size_t size, struct error *error);

// A range as memory: `size` bytes that lie within the source. A file is read into a new mapping
// (`mapping` for munmap, NULL if there is none), of which the file's holes take no memory.
bool source_load(const struct source *source, uint64_t offset, size_t size, const uint8_t **bytes,
                 void **mapping, struct error *error);

// Sections of a recording in the packed form (format/packed.h): made, and read back.

// Writes sections one behind the other.
struct packer;

// From offset `at` of the file on; NULL if there is no memory.
struct packer *packer_new(int file, uint64_t at);
void packer_free(struct packer *packer);

// The section's bytes, packed; sets the places and sizes in `section`, whose entry_bytes counts.
bool packer_add(struct packer *packer, struct cairn_section *section, const uint8_t *bytes,
                size_t size, struct error *error);
// A section that is packed already; `section` keeps its capacity_bytes.
bool packer_copy(struct packer *packer, struct cairn_section *section, const uint8_t *stored,
                 size_t size, struct error *error);

// Where the next section would begin: the size of the file.
uint64_t packer_end(const struct packer *packer);

// Gives back a section into `out`, zeros at first. `budget` is how much may be written into all
// sections of a recording: it goes down by what this one takes, and where it ends, or the blocks
// are not whole, reading stops. Returns the bytes given.
size_t unpack_section(const uint8_t *stored, size_t stored_size, size_t entry_bytes, uint8_t *out,
                      size_t out_size, uint64_t *budget);

#endif
