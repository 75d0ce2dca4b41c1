// SPDX-License-Identifier: Apache-2.0
// The views of what is in blocks, asked of a copy of a process' memory, with their answers as bytes
// (tool/answer/kept.h).
#ifndef TOOL_CMDS_LOOK_ANSWERS_H
#define TOOL_CMDS_LOOK_ANSWERS_H

#include "tool/cmds/core_sets.h"
#include "tool/heap/remedies.h"

struct look_answers {
    char *bytes;  // the caller frees them
    size_t size;
    uint32_t count;
    struct error problem;  // the first view that had no answer, and why; empty: all had one
};

// `subject`: with everything that refers to blocks. `facts`: of the moment at which it was copied.
struct look_answers look_answers_find(struct core_subject *subject,
                                      const struct remedy_facts *facts);

#endif
