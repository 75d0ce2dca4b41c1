// SPDX-License-Identifier: Apache-2.0
// The mappings of a process that a heap may lie in, what its words lead to and where words may lead
// to it, as /proc/PID/maps lists them.
#ifndef TOOL_ATTACH_EXTENTS_H
#define TOOL_ATTACH_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/core/image.h"
#include "tool/core/spans.h"

enum extent_kind {
    EXTENT_CONSTANT,  // private and not writable, of a file: headers and constants of modules
    EXTENT_DATA,      // private and writable, of a file: an allocator's own variables
    EXTENT_BREAK,     // what brk moves
    EXTENT_MEMORY,    // private and writable, of no file
    EXTENT_OTHER,  // no heap, but may refer to one: the main stack, memory that can be read only,
                   // shared memory without a path
};

struct extent {
    uint64_t start, end;
    uint64_t offset;  // in its file
    enum extent_kind kind;
    bool is_code;
};

struct extents {
    ARRAY(struct extent) items;  // ascending
};

// `maps`: a text in the form of /proc/PID/maps. False without memory.
bool extents_read(FILE *maps, struct extents *extents);

// Notes the files that are mapped in `core`, as a core dump would tell them.
bool extents_read_files(FILE *maps, struct core_image *core);

// `smaps`: a text in the form of /proc/PID/smaps. Finds what the process keeps out of core dumps
// (MADV_DONTDUMP), cairn's tables among it. False without memory.
bool extents_read_hidden(FILE *smaps, struct core_spans *hidden);

// All of a process; false, with an error, also if it is gone.
bool extents_look(pid_t pid, struct extents *extents, struct error *error);
bool extents_look_files(pid_t pid, struct core_image *core, struct error *error);
bool extents_look_hidden(pid_t pid, struct core_spans *hidden, struct error *error);

#endif
