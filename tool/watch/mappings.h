// SPDX-License-Identifier: Apache-2.0
// What a process' resident memory consists of: its mappings, as /proc/PID/smaps lists them, each
// put to one of a few kinds.
//
// Kinds are told by name, flags and neighbours. A thread's stack lies behind its guard page; where
// the kernel joined it with the mapping above, the pages of the stack are counted apart. cairn maps
// without reserving swap, which hardly anybody else does; glibc does so for its arenas, which
// heaps.h tells apart. What the program maps itself is `heap` too: own_memory.h tells it apart.
#ifndef TOOL_WATCH_MAPPINGS_H
#define TOOL_WATCH_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/array.h"

struct mapped_range {
    uint64_t start, end;
};

// Private anonymous memory that is no stack.
struct mapped_memory {
    uint64_t start, end, rss_bytes;
    bool is_plain;  // neither what brk moves, nor an arena, nor cairn's: malloc's large blocks, or
                    // the program's own
};

struct mappings {
    struct cairn_picture picture;        // the parts, and their sum
    uint64_t unreserved_bytes;           // resident, within `heap` until mappings_settle_own
    uint64_t undumped_bytes;             // the same, of mappings that cores leave out: cairn's
    struct mapped_range libc_data;       // where glibc's main arena is (arenas.h); start 0: none
    ARRAY(struct mapped_memory) memory;  // by address
};
void mappings_free(struct mappings *mappings);

// What else is known of the process that the mappings are of.
struct mappings_source {
    pid_t pid;                   // 0: its memory cannot be read; what begins as arenas do is one
    int pages;                   // descriptor of /proc/PID/pagemap, or -1
    uint64_t stack_limit_bytes;  // usual size of a thread's stack, 0 if unknown
};

// Reads `smaps`, a text in the form of /proc/PID/smaps. False without memory, or if it is another
// text. mappings_free in any case.
bool mappings_read(FILE *smaps, const struct mappings_source *source, struct mappings *mappings);

// The same of a process; false also if it is gone or may not be looked at.
bool mappings_look(pid_t pid, struct mappings *mappings);

// Gives cairn what it mapped without reservation: `own_bytes` of what others may have mapped so too
// at most. An allocator that does so itself cannot be told from cairn: then it is 0.
void mappings_settle_own(struct mappings *mappings, uint64_t own_bytes);

#endif
