// SPDX-License-Identifier: Apache-2.0
// Stacks of a profile that are one to whoever reads it: their values are added up, and all that
// goes by a stack's number - sizes, ages, snapshots, who freed - goes by the one that stays.
// Numbers are places in the list from then on, as of a profile that nothing was taken away from.
#ifndef TOOL_MODEL_JOIN_H
#define TOOL_MODEL_JOIN_H

#include "tool/model/profile.h"

// Adds stack i to stack into[i], which stays: into[into[i]] is into[i]. False without memory.
bool profile_join(struct profile *profile, const uint32_t *into);

// Returns the number now of a stack that was built with that number, or of the one it was added to.
uint32_t profile_joined_number(const struct profile *profile, uint32_t built);

// Ids of the stacks that one stands for beside itself, and their number.
const struct joined_id *profile_joined_ids(const struct profile *profile, const struct stack *stack,
                                           size_t *count);

#endif
