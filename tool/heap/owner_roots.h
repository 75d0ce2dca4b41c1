// SPDX-License-Identifier: Apache-2.0
// What keeps blocks without being one: variables, what threads have in use and their local data,
// other memory of the process; and to which blocks each of them leads (owners.h).
#ifndef TOOL_HEAP_OWNER_ROOTS_H
#define TOOL_HEAP_OWNER_ROOTS_H

#include "tool/heap/references.h"
#include "tool/heap/thread_data.h"
#include "tool/heap/types.h"

#define OWNER_DATA_OF "data of "  // and a file: variables of it that have no symbol
#define CORE_LEAKED_NAME "leaked: no root leads there"

#define OWNER_EVERYTHING UINT32_MAX
enum owner_root_kind {
    OWNER_MEMORY,        // a variable, other memory, what no root leads to
    OWNER_THREAD,        // what a thread has in use: its stack and registers
    OWNER_FRAME,         // of that: a function's frames, or the registers
    OWNER_THREAD_LOCAL,  // its own data
    OWNER_VARIABLE,      // of that: a variable
};

// What a root of one rank leads to is not those' of later ones.
enum owner_rank {
    OWNER_LASTING,
    OWNER_PASSING,    // what a thread has in use
    OWNER_ALLOCATOR,  // lists of an allocator other than glibc's, which has all blocks in them; it
                      // keeps them in its own data and in mappings that nothing tells from others
    OWNER_RANKS,
};

struct owner_root {
    const char *name;    // of a variable or function; safe to print
    const char *module;  // the path of the file that a variable is in; NULL: none, or of a thread's
    enum owner_root_kind kind;
    uint32_t tid;    // of a thread's
    uint32_t above;  // index of the root that it is a part of, or OWNER_EVERYTHING
    enum owner_rank rank;
};

enum { OWNER_NAME_BYTES = 512 };

struct owner_edge {
    uint32_t root;    // index of it
    uint32_t number;  // of the block that it refers to
};

struct owner_roots {
    ARRAY(struct owner_root) items;
    ARRAY(struct owner_edge) edges;
    uint32_t leaked;  // index of the root of what no other one leads to
};

// Fills the roots and their edges; that of what is leaked has none. `graph`: of the reach, with its
// numbers. `types` names variables and functions; NULL: they need no names. `data`: found with
// these types; what of it lies in blocks is a root of its thread, and the graph is to leave it out.
// `has_locals`: variables of functions are roots below their frames. False without memory.
bool owner_roots_find(struct core_reach *reach, struct core_types *types,
                      const struct thread_data *data, struct core_graph *graph, bool has_locals,
                      struct owner_roots *roots);
void owner_roots_free(struct owner_roots *roots);

// "sessions", "stack and registers of thread 42". With `main_tid` threads have no number, so that
// roots of two moments have the same names: "... of the main thread"; 0: they have.
void owner_root_label(const struct owner_root *root, uint32_t main_tid,
                      char label[OWNER_NAME_BYTES]);

#endif
