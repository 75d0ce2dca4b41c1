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
#include "tool/symbol/options.h"

// One function active at an address. Strings belong to the symbol_table; equal strings of one
// module are the same pointer.
struct symbol_frame {
    const char *function;    // name as the user wants it, NULL if unknown
    const char *plain;       // readable name (name.h), whatever the user wants
    const char *linkage;     // the same as linker or compiler wrote it
    const char *file;        // absolute where the compilation directory allows, NULL if unknown
    uint32_t line;           // 1-based, 0 if unknown
    uint32_t declared_line;  // of a lambda or closure: where it begins; 0 if unknown
    bool is_inlined;         // true: inlined into the next frame of the array
};

struct symbol_query {
    uint64_t address;  // in: ELF virtual address of the call: return address - 1, bias removed
    // out: innermost inlined function first, the function that owns the code last; the array
    // belongs to the symbol_table. frame_count 0 = unresolved.
    struct symbol_frame *frames;
    size_t frame_count;
    bool is_known;  // out: some source has said what there is, if only that there is no name
};

// Where the best names of a module came from, worst first.
enum symbol_source {
    SYMBOL_SOURCE_NONE,       // nothing usable: every query is unresolved
    SYMBOL_SOURCE_DYNSYM,     // exported functions only: a name may be missing, none has a line
    SYMBOL_SOURCE_SYMTAB,     // all functions, no lines
    SYMBOL_SOURCE_DWARF,      // functions, lines, inlined frames (symbol tables fill its gaps)
    SYMBOL_SOURCE_GENERATED,  // told by the program that generated the code
};

// Who was asked for them.
enum symbol_origin {
    SYMBOL_ORIGIN_FILE,
    SYMBOL_ORIGIN_CACHE,
    SYMBOL_ORIGIN_RECORDING,
};

struct symbol_module {
    const char *path;         // as mapped in the target: a file, or a name such as "[vdso]"; "" for
                              // code that belongs to none: addresses are those in the process
    const uint8_t *build_id;  // as recorded; NULL if the module has none
    size_t build_id_bytes;
};

// What a module's resolution stood on; strings belong to the symbol_table.
struct symbol_report {
    enum symbol_source source;
    enum symbol_origin origin;  // of most queries
    const char *path;           // file that gave the best source; NULL if none
    const char *note;           // why names are missing or doubtful, one line; NULL if all is well
    size_t resolved_count;      // queries with at least one frame
    uint64_t stamp;             // of the files that were read, 0 if none were
};

// All addresses of one module.
struct symbol_job {
    struct symbol_module module;
    struct symbol_query *queries;
    size_t count;
    struct symbol_report report;
};

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
// Takes NULL. Frees all strings and frames that the table handed out.
void symbol_table_close(struct symbol_table *table);

// Resolves the queries of each job, in any order, duplicates welcome. Missing, foreign or broken
// files are told in the job's report with true returned; false means no memory (or 2^32 addresses
// of one module). `progress` may be NULL.
bool symbol_resolve_all(struct symbol_table *table, struct symbol_job *jobs, size_t count,
                        const struct symbol_progress *progress, struct error *error);

// The same for one module; `report` may be NULL.
bool symbol_resolve(struct symbol_table *table, const struct symbol_module *module,
                    struct symbol_query *queries, size_t count, struct symbol_report *report,
                    struct error *error);

#endif
