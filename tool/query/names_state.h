// SPDX-License-Identifier: Apache-2.0
// What the files of names_*.c share: how names.h is made.
#ifndef TOOL_QUERY_NAMES_STATE_H
#define TOOL_QUERY_NAMES_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/symbol/bundle.h"
#include "tool/symbol/internal_frames.h"
#include "tool/symbol/symbol.h"

struct place_names {
    struct frame *frames;
    size_t count;
    bool is_wanted;
    bool was_asked;  // what the sources know is here
    bool is_start;   // it is at the outer end of a stack, in a library that starts processes
};

enum { MODULES_TEXT_BYTES = 160, MODULES_NAMED = 3, WANTED_ALL = UINT8_MAX };

// What was found to be internal frames, by function and module; the same pointers are the same
// texts.
struct internal_slot {
    const char *function, *path;
    enum internal_kind kind;
    bool is_used;
};
enum { INTERNAL_SLOTS = 4096 };

struct names {
    const struct profile *profile;
    size_t place_count, module_count;  // that there is room for
    size_t known_nodes;                // of the tree: whether they are starts is known
    uint8_t *wanted_nodes;             // so many places from it outwards are; or WANTED_ALL
    size_t wanted_node_count;          // that there is room for
    struct symbol_table *table;
    struct place_names *places;     // by place
    struct frame *unresolved;       // by place: the frame of one without a name
    struct symbol_report *reports;  // by module, of those that were asked; last: generated code
    uint32_t *unresolved_counts;    // the same; places without a function's name
    struct symbol_options options;
    struct bundle kept;   // names in the recording
    void *kept_bytes;     // of those that were looked up just now; NULL: none
    bool has_kept;        // the recording has names of its own
    bool are_all_needed;  // names of all places, whatever was marked
    bool is_first_read;   // it has none, and is complete: the cache gets all of its own modules
    ARRAY(char *)
    mapped;           // paths of sources and names of Python code that the user wants otherwise
    bool has_python;  // Python's own frames are there
    bool has_dotnet;  // methods of .NET have names
    bool is_dotnet_inside;  // its runtime is a part of the program: no library of it is there
    size_t wanted_count, unresolved_count;
    char unresolved_modules[MODULES_TEXT_BYTES];  // safe text
    struct internal_slot internal[INTERNAL_SLOTS];
};

// Code of the program that was recorded: in a module of its own (or its executable, wherever that
// lies), but not of a library whose templates lie there. `plain` and `file` may be NULL.
bool names_is_own(const struct names *names, const char *plain, const char *file,
                  const char *module, enum internal_kind kind);

// What was asked of some places: `list` is sorted by module, `queries` has one of each place.
struct asked {
    uint32_t *list;
    size_t count;
    struct symbol_query *queries;
    struct symbol_job *jobs;
    size_t job_count;
};

// names_collect.c: the places for which `is_wanted` holds, by module. False without memory.
bool names_list(const struct names *names,
                bool (*is_wanted)(const struct names *names, size_t place), struct asked *asked,
                struct error *error);
// Asks the sources about the places of the list.
bool names_ask(struct names *names, struct asked *asked, struct error *error);
void names_asked_free(struct asked *asked);
// Native code, that of a JIT included: sources of names can be asked.
bool names_is_code(const struct names *names, size_t place);

// names_frames.c: the path that the user wants for a source; false without memory.
bool names_map_source(struct names *names, const char **file);
enum internal_kind names_kind_of(struct names *names, const char *function, const char *path);
// Whatever the rest of the stack is.
bool names_is_internal(enum internal_kind kind);

#endif
