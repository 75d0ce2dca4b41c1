// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the reader of bytehound's files: chunks (bytehound_input.c) and events
// (bytehound.c).
#ifndef TOOL_IMPORT_BYTEHOUND_H
#define TOOL_IMPORT_BYTEHOUND_H

#include "tool/import/replay.h"

struct bytehound_input {
    FILE *in;
    struct error *error;
    uint8_t *packed, *chunk;  // of CHUNK_MAX bytes
    size_t used, filled;      // of the chunk
    uint64_t position;        // in what is unpacked
    bool is_over, is_cut;     // the file ended; within a chunk
};

// False without memory.
bool bytehound_input_start(struct bytehound_input *input, FILE *in, struct error *error);
void bytehound_input_free(struct bytehound_input *input);

// Takes `size` bytes (`out` NULL: they are left out). False at the end of the file, without an
// error, or if it is damaged.
bool bytehound_take(struct bytehound_input *input, void *out, uint64_t size);
// A number of speedy's form: the ones at the beginning of its first byte are how many bytes follow.
bool bytehound_take_varint(struct bytehound_input *input, uint64_t *value);

#endif
