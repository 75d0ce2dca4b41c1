// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap): rows as a user writes them, of a file, or of those that cairn knows,
// for the library (format/wrap.h).
#ifndef TOOL_CMDS_WRAP_ROWS_H
#define TOOL_CMDS_WRAP_ROWS_H

#include "tool/query/arguments.h"

// What --wrap asks for, for free(); NULL: nothing. False, with the row and what is wrong in it.
bool wrap_rows_read(const struct command_args *args, char **text, struct error *error);

#endif
