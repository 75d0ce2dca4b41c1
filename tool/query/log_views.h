// SPDX-License-Identifier: Apache-2.0
// Views of a recording that need the event log beside it.
#ifndef TOOL_QUERY_LOG_VIEWS_H
#define TOOL_QUERY_LOG_VIEWS_H

#include "tool/query/merged.h"

// The log of what was opened becomes opened->log, unless one was named: NAME.events beside
// NAME.cairn. False, with the command that makes one, if there is none.
bool log_views_find(struct opened *opened, struct error *error);

// The profile's pool candidates (tool/model/pool_candidates.h), of the stacks that filters have
// left.
bool log_views_find_pools(struct opened *opened, const struct frame_names *names,
                          struct error *error);

#endif
