// SPDX-License-Identifier: Apache-2.0
// Names that were looked up before, as format/symbols.h lays them out: read from a recording or a
// file of the cache, and made anew. The bytes are never trusted.
#ifndef TOOL_SYMBOL_BUNDLE_H
#define TOOL_SYMBOL_BUNDLE_H

#include "format/symbols.h"
#include "tool/base/array.h"
#include "tool/symbol/job.h"

// Parts of a bundle that was found whole.
struct bundle {
    struct cairn_symbols_header header;
    const uint8_t *modules;
    const uint8_t *symbols;
    const uint8_t *frames;
    const char *strings;
};

// `bytes` must outlive the bundle. False: it is not one, or it does not fit together.
bool bundle_open(struct bundle *bundle, const void *bytes, size_t size);

// The module's entry; false if there is none.
bool bundle_find_module(const struct bundle *bundle, const struct symbol_module *module,
                        struct cairn_symbols_module *entry);

// Text of an offset; NULL for the empty one.
const char *bundle_text(const struct bundle *bundle, uint32_t offset);

// The symbol of an address of the module; false if there is none.
bool bundle_find(const struct bundle *bundle, const struct cairn_symbols_module *module,
                 uint64_t address, struct cairn_symbol *symbol);

// Frame `index` of a symbol that was found; its texts are in the bundle. The readable name is not
// set.
struct symbol_frame bundle_frame(const struct bundle *bundle, const struct cairn_symbol *symbol,
                                 uint32_t index);

// One module's part of a bundle to be written. Queries must be sorted by address and distinct;
// those that no source has answered are left out.
struct bundle_part {
    struct symbol_module module;
    enum symbol_source source;
    const char *source_path, *note;  // may be NULL
    uint64_t stamp;
    bool is_partial;
    const struct symbol_query *queries;
    size_t count;
};

// Makes the bytes of a bundle, for free(); false without memory or beyond 4 GiB.
bool bundle_make(const struct bundle_part *parts, size_t count, void **bytes, size_t *size);

#endif
