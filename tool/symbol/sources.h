// SPDX-License-Identifier: Apache-2.0
// One module's queries through all sources: names that the recording keeps, the cache, files.
#ifndef TOOL_SYMBOL_SOURCES_H
#define TOOL_SYMBOL_SOURCES_H

#include <stdatomic.h>

#include "tool/symbol/bundle.h"
#include "tool/symbol/string_pool.h"

struct answerer {
    const struct symbol_options *options;
    const struct bundle *kept;  // NULL: none
    struct string_pool *names;  // gets everything that the answers point to
    atomic_size_t *done;        // raised by each query that is answered
    bool is_foreign_short;      // modules that are not the program's own: symbol tables only
};

// Bytes of debug information and symbol tables of a module, as far as they are found.
uint64_t answer_bytes(const struct symbol_options *options, const struct symbol_module *module,
                      struct string_pool *scratch);

// Several threads may do so at once, each with a store of its own. False only without memory.
bool answer(const struct answerer *answerer, struct symbol_job *job);

#endif
