// SPDX-License-Identifier: Apache-2.0
// Turns (module, ELF virtual address) into functions, files, lines and inlined frames, in bulk.
//
// One call resolves the addresses of any number of modules, several at a time: a module is opened,
// its units that are touched are read once, and everything but the names is closed again before the
// call returns. Asking per address would repeat that work each time, so collect first.
//
// Sources are asked in this order, each for what the one before did not know: names kept in the
// recording, the cache, files. Nothing here trusts a file: one whose build-id is not the recorded
// one is never used for names; what is missing leaves addresses unresolved and says so in the
// report, it is no failure.
#ifndef TOOL_SYMBOL_SYMBOL_H
#define TOOL_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/symbol/job.h"
#include "tool/symbol/options.h"

// Told how far a resolution has come, by the thread that asked for it and only now and then.
struct symbol_progress {
    void (*show)(void *context, size_t done, size_t total);
    void *context;
};

struct bundle;

// Owns every name and frame handed out; one per command. To be used by one thread.
struct symbol_table;

// `options` NULL: none; they, and `kept` (names that the recording holds, NULL: none), must outlive
// the table. Fails only without memory.
bool symbol_table_open(struct symbol_table **table, const struct symbol_options *options,
                       const struct bundle *kept, struct error *error);
// Names that are kept from now on, instead of those before.
void symbol_table_keep(struct symbol_table *table, const struct bundle *kept);
// Takes NULL. Frees all strings and frames that the table handed out.
void symbol_table_close(struct symbol_table *table);

// Resolves the queries of each job, in any order, duplicates welcome. Missing, foreign or broken
// files are in the job's report, and true is returned; false means no memory (or 2^32 addresses
// of one module). `progress` may be NULL.
bool symbol_resolve_all(struct symbol_table *table, struct symbol_job *jobs, size_t count,
                        const struct symbol_progress *progress, struct error *error);

// The same for one module; `report` may be NULL.
bool symbol_resolve(struct symbol_table *table, const struct symbol_module *module,
                    struct symbol_query *queries, size_t count, struct symbol_report *report,
                    struct error *error);

#endif
