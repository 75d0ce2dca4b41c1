// SPDX-License-Identifier: Apache-2.0
// Which package of this machine a file belongs to.
#ifndef TOOL_SYMBOL_PACKAGE_H
#define TOOL_SYMBOL_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

// Debian's package (without the architecture) that installed the file; false: none is known.
bool package_of(const char *path, char *name, size_t size);

// Name of the package with its debug symbols, where Debian has one made by hand (PACKAGE-dbgsym are
// those made automatically).
void package_of_symbols(const char *package, char *name, size_t size);

#endif
