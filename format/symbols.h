// SPDX-License-Identifier: Apache-2.0
// Names of code, kept: the SYMBOLS section of a recording, and each file of the tool's cache.
//
//     header | modules | symbols | frames | strings
//
// Names are as linkers and compilers write them (mangled), so that how they are shown stays the
// reader's choice. Strings are offsets into the last part and end in NUL; offset 0 is the empty
// string and stands for "unknown". A reader checks every number; what does not fit is refused as a
// whole.
#ifndef CAIRN_SYMBOLS_H
#define CAIRN_SYMBOLS_H

#include <stdint.h>

#include "format/format.h"

#define CAIRN_SYMBOLS_MAGIC "cairnsym"
#define CAIRN_SYMBOLS_VERSION 1u

struct cairn_symbols_header {
    char magic[CAIRN_MAGIC_BYTES];
    uint32_t version;
    uint32_t header_bytes;  // the modules follow
    uint32_t module_count;
    uint32_t symbol_count;
    uint32_t frame_count;
    uint32_t string_bytes;
    uint64_t reserved[4];
};

// Where names came from, worst first.
enum cairn_symbols_source {
    CAIRN_SYMBOLS_NONE = 0,
    CAIRN_SYMBOLS_DYNSYM = 1,
    CAIRN_SYMBOLS_SYMTAB = 2,
    CAIRN_SYMBOLS_DWARF = 3,
    CAIRN_SYMBOLS_GENERATED = 4,  // from the program that generated the code
};

#define CAIRN_SYMBOLS_PARTIAL 1u  // flag of a module: its files had more, which was not read

// A module is the one with this build-id; without one, that of this code key, or else of this path.
// The empty path without a build-id stands for code that belongs to no file.
struct cairn_symbols_module {
    uint32_t path;
    uint32_t build_id_bytes;
    uint8_t build_id[CAIRN_BUILD_ID_MAX];
    uint32_t source;       // enum cairn_symbols_source
    uint32_t source_path;  // file that the names came from
    uint32_t note;         // why names are missing or doubtful
    uint32_t first_symbol;
    uint32_t symbol_count;  // ascending by address
    uint32_t flags;         // CAIRN_SYMBOLS_PARTIAL
    uint64_t stamp;         // cache: changes when the files do that the names came from
    uint64_t code_key;      // without a build-id: tells the file; 0: the path has to do
    uint64_t reserved[2];
};

// One address that was asked for, and the functions active there, innermost first.
struct cairn_symbol {
    uint64_t address;  // of the call's last byte: virtual address in the ELF file
    uint32_t first_frame;
    uint32_t frame_count;  // 0: no name was found
};

#define CAIRN_SYMBOLS_INLINED 1u  // flag of a frame: inlined into the next one
struct cairn_symbol_frame {
    uint32_t function;
    uint32_t file;
    uint32_t line;           // 0: unknown
    uint32_t declared_line;  // of a lambda or closure: where it begins; else 0
    uint32_t flags;
    uint32_t reserved;
};

_Static_assert(sizeof(struct cairn_symbols_header) == 64, "layout");
_Static_assert(sizeof(struct cairn_symbols_module) == 96, "layout");
_Static_assert(sizeof(struct cairn_symbol) == 16, "layout");
_Static_assert(sizeof(struct cairn_symbol_frame) == 24, "layout");

#endif
