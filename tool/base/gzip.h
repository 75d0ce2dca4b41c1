// SPDX-License-Identifier: Apache-2.0
// A stream that compresses what is written to it, in gzip's form, into another stream.
#ifndef TOOL_BASE_GZIP_H
#define TOOL_BASE_GZIP_H

#include <stdio.h>

#include "tool/base/error.h"

// NULL without memory. fclose finishes the compressed data and leaves `out` open; its status, or
// that of `out`, tells of writes that failed.
FILE *gzip_open(FILE *out, struct error *error);

#endif
