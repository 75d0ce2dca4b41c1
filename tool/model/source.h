// SPDX-License-Identifier: Apache-2.0
// Bytes that a recording is read from: a file or a block of memory.
#ifndef TOOL_MODEL_SOURCE_H
#define TOOL_MODEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
