// SPDX-License-Identifier: Apache-2.0
// The labels, key=value, that a program gave to its tasks (include/cairn/cairn.h), as sets: each
// scope of the recording belongs to the set of the labels that it lies in.
#ifndef TOOL_MODEL_CONTEXTS_H
#define TOOL_MODEL_CONTEXTS_H

#include "tool/model/scopes.h"

struct context {
    const char *labels[CAIRN_CONTEXT_LABELS];  // "key=value", by key
    size_t label_count;
    uint64_t entered;  // times that a thread came in
};

struct contexts {
    struct scopes scopes;
    uint32_t *of_scope;  // by scope: index in list; 0: the set without labels
    struct context *list;
    size_t count;  // with the one without labels
};

// By the labels of one key alone, or of all (NULL). False without memory.
bool contexts_read(struct contexts *contexts, struct recording *recording, const char *key);
void contexts_free(struct contexts *contexts);

// What was allocated in each set, for free(). NULL without memory.
struct stack *contexts_sum(const struct contexts *contexts, const struct profile *profile);

struct context_cell {
    uint32_t stack, context;  // indexes
    uint32_t cell;
};

// All cells by stack and set; for free(). NULL without memory.
struct context_cell *contexts_sort_cells(const struct contexts *contexts,
                                         const struct profile *profile, size_t *count);

// The set of a cell.
uint32_t contexts_of_cell(const struct contexts *contexts, const struct profile *profile,
                          size_t cell);

#endif
