// SPDX-License-Identifier: Apache-2.0
// What is asked about addresses of a module, and what the answers are.
#ifndef TOOL_SYMBOL_JOB_H
#define TOOL_SYMBOL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/model/modules.h"

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
    SYMBOL_SOURCE_GENERATED,  // from the program that generated the code
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
    // Without a build-id, what tells its file (tool/model/modules.h); all 0: nothing does.
    struct code_file file;
    uint64_t code_hash, code_key;
    const struct module_segment *segments;
    size_t segment_count;
};

// What a module's resolution stood on; strings belong to the symbol_table.
struct symbol_report {
    enum symbol_source source;
    enum symbol_origin origin;  // of most queries
    const char *path;           // file that gave the best source; NULL if none
    const char *note;           // why names are missing or doubtful, one line; NULL if all is well
    size_t resolved_count;      // queries with at least one frame
    uint64_t stamp;             // of the files that were read, 0 if none were
    bool is_gone;               // the module's file is missing, or another one than was recorded
    bool is_partial;            // there is debug information that was left out, for its size
    bool is_late;               // the time was up before all of it was read
};

// All addresses of one module.
struct symbol_job {
    struct symbol_module module;
    struct symbol_query *queries;
    size_t count;
    struct symbol_report report;
};

#endif
