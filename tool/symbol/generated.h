// SPDX-License-Identifier: Apache-2.0
// Code that a program made at run time, by what the program says about it: perf's map
// (/tmp/perf-PID.map: node --perf-basic-prof, python -X perf, DOTNET_PerfMapEnabled, JVM agents)
// and jitdump (jit-PID.dump: node --perf-prof).
//
// Code moves and addresses are used again. The maps have no times that fit the recording's, so the
// last entry for an address counts.
#ifndef TOOL_SYMBOL_GENERATED_H
#define TOOL_SYMBOL_GENERATED_H

#include "tool/symbol/bytes.h"
#include "tool/symbol/options.h"
#include "tool/symbol/string_pool.h"

struct generated_code {
    uint64_t start, end;
    const char *function;
    const char *file;  // NULL: unknown
    uint32_t line;
    uint32_t order;  // of two entries for the same address the higher counts
};

// Sorted by start; entries may overlap.
struct generated {
    struct generated_code *codes;
    size_t count, capacity;
    const char *path;  // the file that was read, NULL: none
};

// Reads what belongs to the process of these options; a file that is older than the process, or
// somebody else's, is not its own. Texts go to the store. False only without memory.
bool generated_open(struct generated *generated, const struct symbol_options *options,
                    struct string_pool *store);
void generated_close(struct generated *generated);

// NULL: nothing is known.
const struct generated_code *generated_find(const struct generated *generated, uint64_t address);

// What generated_open is made of: adds the entries of a map or a dump, whatever the bytes say, and
// sorts them when all are there. False only without memory.
bool generated_read_map(struct generated *generated, struct bytes bytes, struct string_pool *store);
bool generated_read_dump(struct generated *generated, struct bytes bytes,
                         struct string_pool *store);
void generated_sort(struct generated *generated);

// The pieces of a map's name, "LazyCompile:*draw /src/app.js:12:3": fills function, file and line
// of the code. False only without memory.
bool generated_read_name(struct generated_code *code, const char *name, struct string_pool *store);

#endif
