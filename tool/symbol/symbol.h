// SPDX-License-Identifier: Apache-2.0
// Turns (module, ELF virtual address) into functions, files, lines and inlined frames, in bulk.
//
// One call resolves all addresses of one module: the module is opened, its units that are touched
// are read once, and everything but the names is closed again before the call returns. Asking per
// address would repeat that work each time, so collect first.
//
// Nothing here trusts a file: a file whose build-id is not the recorded one is never used for
// names; what is missing leaves addresses unresolved and says so in the report, it is no failure.
#ifndef TOOL_SYMBOL_SYMBOL_H
#define TOOL_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"

// One function active at an address. Strings belong to the symbol_table; equal strings are the
// same pointer.
struct symbol_frame {
    const char *function;  // readable name (see name.h), NULL if unknown
    const char *file;      // absolute where the compilation directory allows, NULL if unknown
    uint32_t line;         // 1-based, 0 if unknown
    bool is_inlined;       // true: inlined into the next frame of the array
};

struct symbol_query {
    uint64_t address;  // in: ELF virtual address of the call: return address - 1, bias removed
    // out: innermost inlined function first, the function that owns the code last; the array
    // belongs to the symbol_table. frame_count 0 = unresolved.
    const struct symbol_frame *frames;
    size_t frame_count;
};

// Where the best names of a module came from, worst first.
enum symbol_source {
    SYMBOL_SOURCE_NONE,    // nothing usable: every query is unresolved
    SYMBOL_SOURCE_DYNSYM,  // exported functions only: a name may be missing, none has a line
    SYMBOL_SOURCE_SYMTAB,  // all functions, no lines
    SYMBOL_SOURCE_DWARF,   // functions, lines, inlined frames (symbol tables fill its gaps)
};

struct symbol_module {
    const char *path;         // as mapped in the target: a file, or a name such as "[vdso]"
    const uint8_t *build_id;  // as recorded; NULL if the module has none
    size_t build_id_bytes;
};

// What a module's resolution stood on; strings belong to the symbol_table.
struct symbol_report {
    enum symbol_source source;
    const char *path;       // file that gave the best source; NULL if none
    const char *note;       // why names are missing or doubtful, one line; NULL if all is well
    size_t resolved_count;  // queries with at least one frame
};

// Owns every name and frame handed out; one per command. Not thread-safe.
struct symbol_table;

// Fails only without memory.
bool symbol_table_open(struct symbol_table **table, struct error *error);
// Takes NULL. Frees all strings and frames that the table handed out.
void symbol_table_close(struct symbol_table *table);

// Resolves `count` queries of one module, in any order, duplicates welcome. Missing, foreign or
// broken files are told in `report` (may be NULL) with true returned; false means no memory
// (or 2^32 addresses at once).
bool symbol_resolve(struct symbol_table *table, const struct symbol_module *module,
                    struct symbol_query *queries, size_t count, struct symbol_report *report,
                    struct error *error);

#endif
