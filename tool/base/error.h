// SPDX-License-Identifier: Apache-2.0
// How a function of the tool says why it failed: it returns false and fills an error with a
// sentence that names what and where. Only commands print it and end the process.
#ifndef TOOL_BASE_ERROR_H
#define TOOL_BASE_ERROR_H

#include <stdbool.h>

struct error {
    char text[512];  // one line, no newline, no "error:" prefix; cut if longer
};

// Fills `error` (if not NULL) like printf; returns false, so that `return error_set(...)` reads.
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Puts "CONTEXT: " in front of what is there; returns false.
bool error_wrap(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
