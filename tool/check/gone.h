// SPDX-License-Identifier: Apache-2.0
// Tells whether a fix helped: a finding that one recording has, and a later one may not.
#ifndef TOOL_CHECK_GONE_H
#define TOOL_CHECK_GONE_H

#include "tool/check/results.h"
#include "tool/query/arguments.h"

// Adds one result. `claim` is the key of a finding (docs/reference/json.md#claims), or "left" for
// what was never freed, and behind a colon the function that it is about: "temporary:parse_row".
// The finding is gone if `after` has none of that key and function, and the blocks that it is made
// of are half of what they were or less. A finding that `after` cannot have, by the way it was
// recorded, is not known to be gone. False with an error: a file cannot be read, or `before` has no
// such finding.
bool gone_evaluate(const char *claim, const char *before, const char *after,
                   const struct command_args *args, struct results *results, struct error *error);

#endif
