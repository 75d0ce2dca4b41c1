// SPDX-License-Identifier: Apache-2.0
// How names are shown: readable or whole, closures by their place, the user's own rules last.
#ifndef TOOL_SYMBOL_NAMING_H
#define TOOL_SYMBOL_NAMING_H

#include "tool/symbol/job.h"
#include "tool/symbol/options.h"
#include "tool/symbol/string_pool.h"

// Sets the frame's `function` and `plain` from its other fields; false without memory.
bool naming_apply(struct symbol_frame *frame, const struct symbol_options *options,
                  struct string_pool *store);

#endif
