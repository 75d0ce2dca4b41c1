// SPDX-License-Identifier: Apache-2.0
// Included in front of every file of the runtime where it becomes a part of the program itself
// (libcairn_static.a, libcairn_embed.a): there is no dynamic linker to ask for the real functions.
#ifndef BINDINGS_STATIC_SYMBOLS_H
#define BINDINGS_STATIC_SYMBOLS_H

#define CAIRN_STATIC 1
#define dlsym cairn_static_symbol

#endif
