// SPDX-License-Identifier: Apache-2.0
// One block in the live map of a recorded process (format/live_map.h), looked up by its address in
// memory of any kind: without a walk over the map, also of a process that goes on.
#ifndef TOOL_HEAP_LIVE_BLOCK_H
#define TOOL_HEAP_LIVE_BLOCK_H

#include "format/format.h"
#include "tool/proc/memory_reader.h"

// Finds the cell of the block that begins at `address`; false: the map has none there. While the
// process goes on, the block may be another one by then.
bool live_block_cell(const struct memory_reader *memory, const struct cairn_header *header,
                     uint64_t address, uint32_t *cell);

#endif
