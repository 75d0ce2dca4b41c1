// SPDX-License-Identifier: Apache-2.0
// A stream that may be compressed, read as what it holds: gzip, Zstandard, or as it is.
#ifndef TOOL_IMPORT_UNPACK_H
#define TOOL_IMPORT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tool/base/error.h"

// The stream, for fclose, which leaves `in` open; NULL without memory. `head` gets its first bytes,
// which are read again. Data that is damaged or cut off ends early.
FILE *unpack_open(FILE *in, char *head, size_t size, size_t *head_size, struct error *error);

#endif
