// SPDX-License-Identifier: Apache-2.0
// Sections of a recording in the packed form (format/packed.h): made, and read back.
#ifndef TOOL_MODEL_PACK_H
#define TOOL_MODEL_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/base/error.h"

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
