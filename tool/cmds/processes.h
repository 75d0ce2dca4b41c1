// SPDX-License-Identifier: Apache-2.0
// The processes of one run: the recordings of a directory, as a short list by peak heap.
#ifndef TOOL_CMDS_PROCESSES_H
#define TOOL_CMDS_PROCESSES_H

#include <stdbool.h>

#include "tool/base/error.h"
#include "tool/render/terminal.h"

// Small processes, those with a peak below this, are one line together.
#define PROCESS_SMALL_BYTES (1u << 20)

// Prints the recordings beside `path`, which is the one shown and may be NULL.
bool processes_print(const struct terminal *terminal, const char *directory, const char *path,
                     struct error *error);

#endif
