// SPDX-License-Identifier: Apache-2.0
// Memory of a process, which is stopped for a moment, or of a core dump.
#ifndef TOOL_QUERY_HEAP_VIEWS_H
#define TOOL_QUERY_HEAP_VIEWS_H

#include <limits.h>

#include "tool/base/error.h"
#include "tool/heap/stopped.h"
#include "tool/model/heap_state.h"
#include "tool/model/profile.h"
#include "tool/query/merged.h"
#include "tool/query/removed_files.h"

// `word` is a pid or a core dump. False of recordings, which have the totals alone, and of NULL.
bool heap_views_have_memory(const char *word);

// A look at the heap of a process, which is stopped for a moment, or of a core dump:
//
//     heap_look_take       its memory
//     heap_look_recording  its recording, if it has one; of a process opened after the look, so
//                          that it has every cell that the map of blocks names
//     heap_look_survey     the figures

// What of a process is needed; a core has everything.
enum heap_depth {
    HEAP_HEADS,       // which blocks there are, and the first word of each
    HEAP_BLOCKS,      // what is in those of glibc
    HEAP_TYPES,       // the same of other allocators'
    HEAP_REFERENCES,  // everything that is in them or may refer to them
};

struct heap_wish {
    enum heap_depth depth;
    uint64_t bytes_max;      // of a process' memory, to be copied while it stands
    const char *way_around;  // what to say to have more copied
    bool may_draw;           // beyond that a part of the heap is drawn (tool/heap/windows.h)
    uint64_t seed;
};

struct heap_look {
    bool is_core, is_recorded;
    pid_t pid;              // of a process
    char name[PATH_MAX];    // the path of the core, or the process' number
    char path[PATH_MAX];    // of a process' recording
    int recording;          // that file, open: the process may end; -1: none
    struct core_image own;  // of a core
    struct stopped_image live;
    struct removed_files removed;
    const struct core_image *core;  // either
    struct cairn_header header;     // of the recording
};

// A process' number, or the path of a core dump; NULL: neither.
bool heap_look_is_possible(const char *word);

// `word`: the path of a core dump, or, if there is no file of that name, the number or name of a
// process. False with an error that names it; then there is nothing to close. The look must stay
// where it is.
bool heap_look_take(const char *word, const struct heap_wish *wish, struct heap_look *look,
                    struct error *error);

// Of the process, which may be ending, that writes the recording with this header.
bool heap_look_take_recorded(pid_t pid, const struct cairn_header *header,
                             const struct heap_wish *wish, struct heap_look *look,
                             struct error *error);

// Says whether its allocator may be another than glibc's, whose heap is to be searched.
bool heap_look_may_be_another(const struct heap_look *look);

// Where blocks begin that a look at a part of a heap counts; NULL: everywhere.
const struct spans *heap_look_begins(const struct heap_look *look);

// Opens the recording that there is.
bool heap_look_recording(const struct heap_look *look, struct opened *opened, struct error *error);

// What an error about it begins with: "process 42", or the path of a core.
bool heap_look_blame(const struct heap_look *look, struct error *error);

// `profile`: of the recording, not narrowed; NULL if it has none.
bool heap_look_survey(const struct heap_look *look, const struct profile *profile,
                      struct heap_state *state, struct error *error);

void heap_look_close(struct heap_look *look);

#endif
