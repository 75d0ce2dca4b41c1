// SPDX-License-Identifier: Apache-2.0
// One module's queries through all sources: names that the recording keeps, the cache, files.
#ifndef TOOL_SYMBOL_ANSWER_H
#define TOOL_SYMBOL_ANSWER_H

#include <stdatomic.h>

#include "tool/symbol/bundle.h"
#include "tool/symbol/store.h"

struct answerer {
    const struct symbol_options *options;
    const struct bundle *kept;  // NULL: none
    struct store *names;        // gets everything that the answers point to
    atomic_size_t *done;        // raised by each query that is answered
};

// Several threads may do so at once, each with a store of its own. False only without memory.
bool answer(const struct answerer *answerer, struct symbol_job *job);

#endif
