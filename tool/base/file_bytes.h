// SPDX-License-Identifier: Apache-2.0
// All of some bytes at a place of a file, read or written by as many calls as that takes.
#ifndef TOOL_BASE_FILE_BYTES_H
#define TOOL_BASE_FILE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// False with errno; what was written up to there stays.
bool file_write_at(int file, const void *bytes, size_t count, uint64_t at);

// False with errno, which is 0 if the file ends before that.
bool file_read_at(int file, void *bytes, size_t count, uint64_t at);

#endif
