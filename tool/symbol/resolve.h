// SPDX-License-Identifier: Apache-2.0
// Answers the queries of one module from its files.
#ifndef TOOL_SYMBOL_RESOLVE_H
#define TOOL_SYMBOL_RESOLVE_H

#include <stdatomic.h>

#include "tool/symbol/job.h"
#include "tool/symbol/locate.h"
#include "tool/symbol/string_pool.h"

struct resolver {
    const struct symbol_options *options;
    struct string_pool *names;  // gets names, paths and frames
    atomic_size_t *done;        // raised by each query that is answered
    bool is_without_lines;      // leaves debug information alone
};

// The time is up.
bool resolve_is_late(const struct symbol_options *options);

// Answers those queries that are not known yet, but for the frames' readable names, and makes the
// report. False only without memory.
bool resolve_from_files(struct resolver *resolver, const struct located *files,
                        struct symbol_job *job);

#endif
