// SPDX-License-Identifier: Apache-2.0
// Long C++ and Rust names, and paths, in little space: template arguments go first, then outer
// namespaces, since a name's end says most.
#ifndef TOOL_RENDER_SHORTEN_H
#define TOOL_RENDER_SHORTEN_H

#include <stddef.h>

// Shortens an escaped function name in place until it fits into `columns`, if it can.
void shorten_function(char *name, size_t columns);

// Shortens an escaped path in place likewise: leading folders go, its last part stays whole.
void shorten_path(char *path, size_t columns);

#endif
