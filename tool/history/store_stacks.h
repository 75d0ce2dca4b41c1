// SPDX-License-Identifier: Apache-2.0
// Stacks in a history: nodes of one tree, each a function and the node that called it, so that
// programs with ten thousands of deep stacks take a few megabytes.
#ifndef TOOL_HISTORY_STORE_STACKS_H
#define TOOL_HISTORY_STORE_STACKS_H

#include "tool/history/store.h"

struct stack_node {
    int64_t caller, function, number;  // caller 0: none
};

// Numbers that were asked for already, of one comparison's texts; starts zeroed.
struct stack_numbers {
    int64_t *functions;  // by text, 0: not asked for
    ARRAY(struct stack_node) nodes;
    struct index_table table;
};
// Before stacks of another comparison: numbers of its texts are others.
void stack_numbers_forget_texts(struct stack_numbers *numbers);
void stack_numbers_free(struct stack_numbers *numbers);

// The number of a row's stack, made if there is none. False with an error.
bool stack_number(struct store *store, struct stack_numbers *numbers, const struct diff *diff,
                  size_t row, int64_t *number, struct error *error);

// The functions of a stack, the innermost first, safe texts with a newline between two; for free().
// NULL with an error.
char *stack_spell(struct store *store, int64_t number, struct error *error);

#endif
