// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_SINK_TOOL_LINK_H
#define RUNTIME_SINK_TOOL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/hello.h"

enum tool_answer {
    TOOL_ABSENT,   // nobody listens: record to a file
    TOOL_REFUSED,  // the tool does not want this process recorded
    TOOL_GAVE,     // it gave files
};

// Descriptors; -1: none.
struct tool_link_files {
    int memory;  // the memfd
    int named;   // a file that has a name, the tool's executable
};

// Asks the tool on the abstract socket `name` (CAIRN_SOCKET) for this process' memfd. Waits two
// seconds at most.
enum tool_answer tool_link_ask(const char *name, uint32_t forked_from, uint64_t attachment,
                               struct tool_link_files *files);

// Asks for the variables that the run's programs have: NAME=VALUE, each ends in NUL, an empty one
// ends. Returns false if nobody answers.
bool tool_link_ask_variables(const char *name, char *text, size_t size);

// A program that is started unrecorded. `is_in_place`: the process becomes it.
struct tool_link_unrecorded {
    enum cairn_unrecorded reason;
    bool is_in_place;
    bool is_withdrawn;  // it could not be started after all
    const char *program;
};

// Tells the tool of it, and waits for the answer, so that it is known before the program can end.
void tool_link_say_unrecorded(const char *name, const struct tool_link_unrecorded *unrecorded);

// True if a tool still listens there.
bool tool_link_is_alive(const char *name);

// The same, and tells it that this process ends: it gets `wait_us` at most for a
// last look at its memory.
bool tool_link_say_end(const char *name, uint32_t wait_us);

#endif
