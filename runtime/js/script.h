// SPDX-License-Identifier: Apache-2.0
// Scripts of V8, and the line of a position in one. V8 makes a table of lines when it is asked for
// one; where there is none, the lines of the source are counted here, once, with marks on the way.
#ifndef RUNTIME_JS_SCRIPT_H
#define RUNTIME_JS_SCRIPT_H

#include <stdint.h>

#include "runtime/managed/memory.h"

enum { SCRIPTS_SEEN = 512, SCRIPT_MARKS = 1 << 18 };

// A source whose lines were counted: how many begin before each piece of it.
struct script_seen {
    int32_t id;
    uint32_t length;  // 0: none
    uint32_t first_mark;
};

// One owner.
struct script_reader {
    struct script_seen seen[SCRIPTS_SEEN];
    uint32_t marks[SCRIPT_MARKS];
    uint32_t mark_count;
};

// The number that V8 gave the script, for good; -1: it is none.
int32_t script_id(struct memory_reader *memory, uint64_t script);

// The line, from 1 on, of the character at a position; 0: not known.
uint32_t script_line(struct script_reader *reader, struct memory_reader *memory, uint64_t script,
                     int32_t position);

#endif
