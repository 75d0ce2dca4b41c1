// SPDX-License-Identifier: Apache-2.0
// What the files of names_*.c share: how names.h is made.
#ifndef TOOL_CMDS_NAMES_STATE_H
#define TOOL_CMDS_NAMES_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/base/array.h"
#include "tool/cmds/names.h"
#include "tool/symbol/bundle.h"
#include "tool/symbol/plumbing.h"

struct place_names {
    struct frame *frames;
    size_t count;
    bool is_wanted;
};

enum { MODULES_TEXT_BYTES = 160, MODULES_NAMED = 3 };

// What was found to be plumbing, by function and module; the same pointers are the same texts.
struct plumbing_slot {
    const char *function, *path;
    enum plumbing_kind kind;
    bool is_used;
};
enum { PLUMBING_SLOTS = 4096 };

struct names {
    const struct profile *profile;
    size_t place_count, module_count;  // that there is room for
    struct symbol_table *table;
    struct place_names *places;     // by place
    struct frame *unresolved;       // by place: the frame of one without a name
    struct symbol_report *reports;  // by module, of those that were asked; last: generated code
    uint32_t *unresolved_counts;    // the same; places without a function's name
    struct symbol_options options;
    struct bundle kept;  // names in the recording
    ARRAY(char *)
    mapped;           // paths of sources and names of Python code that the user wants otherwise
    bool has_python;  // Python's own frames are there
    size_t wanted_count, unresolved_count;
    char unresolved_modules[MODULES_TEXT_BYTES];  // safe text
    struct plumbing_slot plumbing[PLUMBING_SLOTS];
};

// What was asked of some places: `list` is sorted by module, `queries` has one of each place.
struct asked {
    uint32_t *list;
    size_t count;
    struct symbol_query *queries;
    struct symbol_job *jobs;
    size_t job_count;
};

// names_ask.c: the places for which `is_wanted` holds, by module. False without memory.
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
enum plumbing_kind names_kind_of(struct names *names, const char *function, const char *path);
// Whatever the rest of the stack is.
bool names_is_plumbing(enum plumbing_kind kind);

#endif
