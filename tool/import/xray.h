// SPDX-License-Identifier: Apache-2.0
// LLVM XRay's logs of a program built with -fxray-instrument: which functions each thread entered
// and left, by number, and of those that log it, their first argument. A function that logs its
// argument is taken for one that allocates, and the argument for the bytes that were asked for.
//
// xray.c reads the two forms of logs, xray_stacks.c makes stacks of entries and exits, xray_map.c
// knows which function of the program has which number.
#ifndef TOOL_IMPORT_XRAY_H
#define TOOL_IMPORT_XRAY_H

#include "tool/import/import.h"

// Addresses of functions in their ELF file; that of number 1 comes first.
struct xray_map {
    ARRAY(uint64_t) functions;
};

// From the section xray_instr_map of a program.
bool xray_map_read(struct xray_map *map, const char *path, struct error *error);

enum xray_kind { XRAY_ENTER, XRAY_EXIT, XRAY_TAIL_EXIT, XRAY_ENTER_ARGUMENT, XRAY_KINDS };

struct xray_call {
    uint32_t function;
    uint32_t node;  // of the tree, once something was allocated there; else IMPORT_NONE
};

struct xray_thread {
    uint32_t tid;
    ARRAY(struct xray_call) calls;  // entered and not left, outermost first
    uint64_t hidden_count;          // of those, the inner ones that are not kept
    uint64_t entered_at;            // when the innermost was entered; 0: something came after that
};

struct xray_stacks {
    struct imported *imported;
    struct xray_map map;
    bool has_map;
    ARRAY(struct xray_thread) threads;
    struct index_table thread_table;
    uint64_t argument_count;   // calls that were counted
    uint64_t unmatched_count;  // exits of functions whose entry is not in the log
    uint64_t deep_count;       // calls of which the middle of the stack is missing
    uint64_t odd_count;        // arguments that cannot be a size
    uint64_t shortest;         // of the calls that call nothing, in the clock's units
};

void xray_stacks_free(struct xray_stacks *stacks);

// The thread, valid until another one is asked for. NULL without memory.
struct xray_thread *xray_thread_of(struct xray_stacks *stacks, uint32_t tid);

// An event of it.
bool xray_stacks_add(struct xray_stacks *stacks, struct xray_thread *thread, enum xray_kind kind,
                     uint32_t function, uint64_t at, struct error *error);
// The argument of the function that it entered last, or (`is_entered` false) of one that is deeper
// than the log's stacks are.
bool xray_stacks_argument(struct xray_stacks *stacks, struct xray_thread *thread, uint32_t function,
                          uint64_t argument, bool is_entered, struct error *error);

#endif
