// SPDX-License-Identifier: Apache-2.0
// A core dump as memory: what its process had at an address.
//
// Any bytes may be in such a file; everything is checked, and what is not there is simply not read.
#ifndef TOOL_CORE_IMAGE_H
#define TOOL_CORE_IMAGE_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/model/source.h"

struct core_segment {
    uint64_t start, end;  // addresses
    uint64_t offset;      // of its bytes in the file
    uint64_t bytes;  // that the file has of it: less than the segment if it was left out or cut
};

struct core_image {
    struct source source;
    ARRAY(struct core_segment) segments;  // ascending, apart from each other
    uint64_t missing_bytes;               // that the file should have and does not: it was cut off
    uint32_t pid;                         // 0: not told
    uint32_t machine;                     // ELF e_machine
};

// Whether the file is an ELF core dump, of any machine. False too if it cannot be read.
bool core_is_one(const char *path);

// Refuses what is no core dump of a 64-bit little-endian machine.
bool core_open(const char *path, struct core_image *core, struct error *error);
void core_close(struct core_image *core);

// Copies `size` bytes from `address`; false if one of them is not in the file.
bool core_read(const struct core_image *core, uint64_t address, void *out, size_t size);

// The segment that `address` lies in, or NULL.
const struct core_segment *core_segment_of(const struct core_image *core, uint64_t address);

#endif
