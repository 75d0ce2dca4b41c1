// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the reader of Perfetto's traces: packets and dumps (perfetto.c), what they
// refer to (perfetto_stacks.c).
#ifndef TOOL_IMPORT_PERFETTO_H
#define TOOL_IMPORT_PERFETTO_H

#include "tool/import/import.h"
#include "tool/import/protobuf.h"

enum { PERFETTO_DEPTH_MAX = 4096 };
enum perfetto_kind { FUNCTION, PATH, SOURCE, MAPPING, FRAME, STACK, KINDS };

struct perfetto_entry {
    uint64_t sequence, id;
    enum perfetto_kind kind;
    struct span span;
    uint32_t place_plus_1;   // of frames
    uint32_t number_plus_1;  // of mappings: which stretch stands for it
};

struct perfetto_symbols {  // of an address of a module
    uint32_t path;
    uint64_t address;
    struct span span;
};

struct perfetto {
    struct imported *imported;
    struct error *error;
    ARRAY(struct perfetto_entry) entries;
    ARRAY(struct perfetto_symbols) symbols;
    struct index_table entry_table, symbol_table;
    ARRAY(uint8_t *) unpacked;
    ARRAY(uint64_t) pids;
    ARRAY(struct import_stack) current, last, peak;
    uint64_t pid, start_ns, sequence;
    uint64_t interval_bytes, at_ns;
    int64_t peak_bytes;
    uint32_t mapping_count, heap_name;
    bool is_profile_pass, has_dump, has_max, is_lossy, has_other_heap, has_chosen;
    uint32_t stack[PERFETTO_DEPTH_MAX];
};

bool perfetto_bad(struct perfetto *reader, const char *what);

// Which fields of a message are interned.
struct perfetto_interned {
    uint32_t number;
    enum perfetto_kind kind;
};
extern const struct perfetto_interned perfetto_of_sequence[], perfetto_of_profile[];

// Takes up what is interned by a message, for the reader's sequence.
bool perfetto_intern(struct perfetto *reader, struct span span,
                     const struct perfetto_interned *fields);
// Names of addresses (ModuleSymbols).
bool perfetto_read_symbols(struct perfetto *reader, struct span span);
// The node of a callstack.
bool perfetto_node_of(struct perfetto *reader, uint64_t id, uint32_t *node);

#endif
