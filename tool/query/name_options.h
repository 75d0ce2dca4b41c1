// SPDX-License-Identifier: Apache-2.0
// What the command line says about names: where to look for them and how to show them. Read once
// for any command that has such options, before it runs; code that opens a recording asks here.
#ifndef TOOL_QUERY_NAME_OPTIONS_H
#define TOOL_QUERY_NAME_OPTIONS_H

#include "tool/query/arguments.h"
#include "tool/symbol/options.h"

// False after an error was filled: the options are wrong.
bool name_options_read(const struct command_args *args, struct error *error);

// Without the parts that depend on a recording.
struct symbol_options *name_options_symbols(void);

// The path under which a source is to be shown; NULL: as it is. Memory for free().
char *name_options_map_source(const char *path);

#endif
