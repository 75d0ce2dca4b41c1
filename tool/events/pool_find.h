// SPDX-License-Identifier: Apache-2.0
// Finds places for pools in an event log (tool/model/pool_candidates.h).
#ifndef TOOL_EVENTS_POOL_FIND_H
#define TOOL_EVENTS_POOL_FIND_H

#include "tool/base/error.h"
#include "tool/events/pool_search.h"
#include "tool/model/pool_candidates.h"

// Reads the log three times at most. Memory goes with the cells and the blocks that are followed.
// False with an error.
bool pool_candidates_find(const struct pool_search *search, struct pool_candidates *found,
                          struct error *error);
void pool_candidates_free(struct pool_candidates *found);

#endif
