// SPDX-License-Identifier: Apache-2.0
// Which package of this machine a file belongs to.
#ifndef TOOL_SYMBOL_PACKAGE_H
#define TOOL_SYMBOL_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

// Debian's package (without the architecture) that installed the file; false: none is known.
bool package_of(const char *path, char *name, size_t size);

#endif
