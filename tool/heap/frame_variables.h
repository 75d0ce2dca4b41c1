// SPDX-License-Identifier: Apache-2.0
// Variables of functions that are being executed, by where they lie on the stack: by debug
// information, which is read for it and given back.
#ifndef TOOL_HEAP_FRAME_VARIABLES_H
#define TOOL_HEAP_FRAME_VARIABLES_H

#include "tool/base/array.h"
#include "tool/heap/frames.h"

struct stack_variable {
    const struct core_thread *thread;
    uint64_t start, end;
    char *name;
};

struct frame_variables {
    ARRAY(struct stack_variable) items;  // by thread and start
};

// What has no debug information has none. False without memory.
bool frame_variables_find(const struct core_image *core, struct core_types *types,
                          struct frame_variables *variables);
void frame_variables_free(struct frame_variables *variables);

// The variable of a thread that an address lies in, the one that begins last; NULL: none.
const struct stack_variable *frame_variable_at(const struct frame_variables *variables,
                                               const struct core_thread *thread, uint64_t address);

#endif
