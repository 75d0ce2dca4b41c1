// SPDX-License-Identifier: Apache-2.0
// Answers of views of a process or of a core dump: what they have in common.
#ifndef TOOL_QUERY_LOOK_ANSWER_H
#define TOOL_QUERY_LOOK_ANSWER_H

#include <limits.h>

#include "tool/answer/forms.h"
#include "tool/query/heap_views.h"
#include "tool/query/views.h"

// The memory that an answer is of; it stays where it is.
struct look_answer {
    char subject[PATH_MAX];
    char program[NAME_MAX];
};

// Says in the answer whose memory it is of.
void look_answer_of(struct look_answer *of, const struct heap_look *look, struct answer *answer);

// Takes the first claim's sentence as the title.
void look_answer_claims(struct answer *answer, const struct claim *claims, size_t count);

// Prints the answer in the form that is asked for, else as a screen.
bool look_answer_print(const struct request *request, struct answer *answer, struct error *error);

#endif
