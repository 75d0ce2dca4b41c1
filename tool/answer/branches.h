// SPDX-License-Identifier: Apache-2.0
// The screen of an answer whose rows are the branches of a tree.
#ifndef TOOL_ANSWER_BRANCHES_H
#define TOOL_ANSWER_BRANCHES_H

#include "tool/answer/answer.h"

// Prints all rows, each below the one it branches from. Sets answer->is_failed without memory.
void branches_print(const struct terminal *terminal, struct answer *answer);

#endif
