// SPDX-License-Identifier: Apache-2.0
// Asks another program: what it prints, kept as text.
#ifndef TOOL_BASE_CAPTURE_H
#define TOOL_BASE_CAPTURE_H

#include <stddef.h>

#include "tool/base/error.h"

struct captured {
    char *text;  // standard output, ends with NUL; for free()
    size_t size;
    int status;  // 128+N: ended by signal N
};

// Runs words[0], found in PATH, without standard input. Its stderr goes to the screen if
// `shows_errors`. False with an error if it cannot be started or prints more than 256 MiB.
bool capture(char *const words[], bool shows_errors, struct captured *captured,
             struct error *error);

#endif
