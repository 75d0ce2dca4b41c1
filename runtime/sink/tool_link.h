// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_SINK_TOOL_LINK_H
#define RUNTIME_SINK_TOOL_LINK_H

#include <stdbool.h>
#include <stdint.h>

enum tool_answer {
    TOOL_ABSENT,   // nobody listens: record to a file
    TOOL_REFUSED,  // the tool does not want this process recorded
    TOOL_GAVE,     // *memory_fd is the memfd
};

// Asks the tool on the abstract socket `name` (CAIRN_SOCKET) for this process' memfd. Waits two
// seconds at most.
enum tool_answer tool_link_ask(const char *name, uint32_t forked_from, int *memory_fd);

// True if a tool still listens there.
bool tool_link_is_alive(const char *name);

#endif
