// SPDX-License-Identifier: Apache-2.0
// File and line of requested addresses of one compile unit, from its line table.
#ifndef TOOL_SYMBOL_LINE_H
#define TOOL_SYMBOL_LINE_H

#include <elfutils/libdw.h>

#include "tool/symbol/budget.h"
#include "tool/symbol/bytes.h"
#include "tool/symbol/image.h"
#include "tool/symbol/string_pool.h"
#include "tool/symbol/unit.h"

// The line table of one compile unit, DWARF 2 to 5: its file names, and its program, which line.h
// runs. Read here and not by libdw, which keeps 40 bytes for each row of the table: most memory
// of a large module for rows that nobody asked for.

#define LINE_OPCODE_BASE_MAX 256

struct line_file {
    const char *name;  // in the section
    uint64_t directory;
    const char *path;  // in the store, NULL until asked for
};

// Kept from unit to unit for its buffers; all zero at first.
struct line_table {
    bool is_split;
    struct effort *effort;  // set by the user before anything is read

    // Sections of the image.
    struct bytes line;
    struct bytes line_text;
    struct bytes text;

    // The unit's header.
    uint16_t version;
    uint8_t offset_bytes;  // 4 or 8
    uint8_t instruction_bytes;
    int8_t line_base;
    uint8_t line_range;
    uint8_t opcode_base;
    uint8_t opcode_lengths[LINE_OPCODE_BASE_MAX];  // operands of a standard opcode
    struct bytes program;           // empty if the unit has no table, or a broken one
    const char *compile_directory;  // may be NULL

    const char **directories;
    size_t directory_count;
    size_t directory_capacity;
    struct line_file *files;
    size_t file_count;
    size_t file_capacity;
};

// Finds the sections of an image whose DWARF libdw has opened (it unpacks them).
void line_table_open(struct line_table *table, const struct image *image);

// Finds those of a split debug file (.dwo). Its only table has files and no program.
void line_table_open_split(struct line_table *table, Elf *elf);

// Reads the unit's header. A missing or broken table leaves an empty program. False only without
// memory. For a split debug file, `unit` is the skeleton.
bool line_table_read(struct line_table *table, Dwarf_Die *unit);

// The path of a file number as the unit's DWARF uses it; *path NULL if there is no such file.
// False only without memory.
bool line_table_file(struct line_table *table, uint64_t number, struct string_pool *names,
                     const char **path);

void line_table_close(struct line_table *table);

// Runs the table's program once and sets file and line of the requests (sorted by address) that
// it covers. File names are made in `names`. False only without memory.
bool line_find(struct line_table *table, const struct image *image, struct request *requests,
               size_t count, struct string_pool *names);

#endif
