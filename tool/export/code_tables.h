// SPDX-License-Identifier: Apache-2.0
// The code that the stacks of a profile go through, as pprof and OTLP have it: locations, mappings,
// functions and texts, each numbered from 1 as they are met. 0 is none, and the empty text.
//
// A location is a place of the code with the functions inlined there. Its address lies inside the
// call. A mapping is an executable segment of a module; the first one is the program's. Code
// without a module, and stacks that were not recorded, have a mapping of their own at the end.
#ifndef TOOL_EXPORT_CODE_TABLES_H
#define TOOL_EXPORT_CODE_TABLES_H

#include "tool/base/protobuf.h"
#include "tool/export/export.h"
#include "tool/model/strings.h"

struct code_mapping {
    uint32_t module;  // MODULE_NONE: what has no module
    uint64_t start, limit, offset;
    bool has_functions, has_files, has_lines, has_inlines;
};

struct code_function {
    uint32_t name, file;  // texts
};

struct code_tables {
    const struct export *export;
    struct strings strings;
    uint32_t *location_of_place;  // 0: not met yet
    ARRAY(uint32_t) places;       // by location - 1
    uint32_t unrecorded, folded;  // locations of stacks that have none; 0: there are none
    ARRAY(struct code_mapping) mappings;
    uint32_t *mapping_of_module;  // first one's number
    ARRAY(struct code_function) functions;
    struct index_table function_table;
    bool has_failed;  // there was no memory: numbers mean nothing
};

struct code_location {
    uint32_t mapping;
    uint64_t address;            // 0: none
    const struct frame *frames;  // innermost first; some may be without a function
    size_t frame_count;
};

// What the stack of export->folded is called.
#define CODE_FOLDED "other"

// False without memory; code_tables_free has to follow in any case.
bool code_tables_start(struct code_tables *tables, const struct export *export);
void code_tables_free(struct code_tables *tables);

// The locations of a stack, innermost first, as bare integers.
void code_tables_put_stack(struct code_tables *tables, struct byte_buffer *message, uint32_t node);
// The one location of what was folded.
uint32_t code_tables_folded(struct code_tables *tables);

// All mappings; after that code_tables_location knows where a location is.
void code_tables_list_mappings(struct code_tables *tables);
struct code_location code_tables_location(struct code_tables *tables, uint32_t number);
uint32_t code_tables_function(struct code_tables *tables, const struct frame *frame);
// The functions of a location with their lines, innermost first, as fields of `message`; `line` is
// empty before and after.
void code_tables_put_lines(struct code_tables *tables, const struct code_location *location,
                           struct byte_buffer *line, unsigned field, struct byte_buffer *message);

// Path and build-id (hexadecimal digits, "": none) of a mapping.
#define CODE_BUILD_ID_BYTES (2 * CAIRN_BUILD_ID_MAX + 1)
const char *code_mapping_path(const struct code_tables *tables, const struct code_mapping *mapping);
void code_mapping_build_id(const struct code_tables *tables, const struct code_mapping *mapping,
                           char out[CODE_BUILD_ID_BYTES]);

#endif
