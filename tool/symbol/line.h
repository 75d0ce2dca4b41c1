// SPDX-License-Identifier: Apache-2.0
// File and line of requested addresses of one compile unit, from its line table.
#ifndef TOOL_SYMBOL_LINE_H
#define TOOL_SYMBOL_LINE_H

#include "tool/symbol/line_table.h"
#include "tool/symbol/unit.h"

// Runs the table's program once and sets file and line of the requests (sorted by address) that
// it covers. File names are made in `names`. False only without memory.
bool line_find(struct line_table *table, const struct image *image, struct request *requests,
               size_t count, struct store *names);

#endif
