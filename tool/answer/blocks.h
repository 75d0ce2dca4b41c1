// SPDX-License-Identifier: Apache-2.0
// The screen of answers whose rows are blocks of lines, a stack each: its rank and its figures,
// phrases about it, its frames, and what its view has to say above and below these.
#ifndef TOOL_ANSWER_BLOCKS_H
#define TOOL_ANSWER_BLOCKS_H

#include "tool/answer/answer.h"

void blocks_print(const struct terminal *terminal, struct answer *answer);

#endif
