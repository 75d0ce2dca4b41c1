// SPDX-License-Identifier: Apache-2.0
// The names that a program gave through include/cairn/cairn.h: regions of its code, pools.
#ifndef TOOL_MODEL_SCOPES_H
#define TOOL_MODEL_SCOPES_H

#include "tool/model/profile.h"

struct scope {
    uint32_t kind;     // enum cairn_scope_kind; 0: not in use
    uint32_t parent;   // index, lower than its own; 0: none
    char *path;        // "outer/inner", as the program wrote it
    const char *name;  // its own part of the path: of a label "key=value"
    struct cairn_scope entry;
};

struct scopes {
    struct scope *list;  // index = scope id
    size_t count;
};

// What is damaged is left out. False without memory.
bool scopes_read(struct scopes *scopes, struct recording *recording);
void scopes_free(struct scopes *scopes);

// What was allocated in each region, by scope, for free(). With those within it, or itself
// alone. Only cells that filters left count. NULL without memory.
struct stack *scopes_sum(const struct scopes *scopes, const struct profile *profile,
                         bool has_inner);

#endif
