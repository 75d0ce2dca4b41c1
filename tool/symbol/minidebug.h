// SPDX-License-Identifier: Apache-2.0
// .gnu_debugdata: the symbol table of local functions that some distributions leave in stripped
// files, as an ELF file compressed with xz.
#ifndef TOOL_SYMBOL_MINIDEBUG_H
#define TOOL_SYMBOL_MINIDEBUG_H

#include "tool/symbol/image.h"

// `packed` stays closed if the module has none, or a broken one.
void minidebug_open(struct image *packed, const struct image *module);

#endif
