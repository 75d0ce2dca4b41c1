// SPDX-License-Identifier: Apache-2.0
// Names by build-id, kept on disk for the next command: one bundle a file. The whole is bounded,
// what was not used for longest goes first. Without a directory, or where it cannot be written,
// nothing is kept and nobody minds.
#ifndef TOOL_SYMBOL_CACHE_H
#define TOOL_SYMBOL_CACHE_H

#include "tool/symbol/bundle.h"

#define CACHE_BYTES_MAX ((uint64_t)256 << 20)

struct cached {
    struct bundle bundle;
    struct cairn_symbols_module module;
    void *bytes;
};

// What is kept about the module; false if nothing is.
bool cache_load(const char *directory, const struct symbol_module *module, struct cached *cached);
void cache_release(struct cached *cached);

// Keeps a part, and removes the oldest files beyond `bytes_max`.
void cache_save(const char *directory, const struct bundle_part *part, uint64_t bytes_max);

#endif
