// SPDX-License-Identifier: Apache-2.0
// Pre-existing blocks: those that glibc's allocator had handed out before the library was loaded.
// They are found in a copy of the allocator's own data, and the library enters them into its live
// map. Each has a kind, by the word that it begins with (tool/heap/types.h).
//
// There are at most CAIRN_CENSUS_KINDS_MAX kinds. Classes may take all of them, other names half:
// places without a symbol can be many. Blocks beyond that are of an unknown type.
//
// Blocks are found and entered during the stop in which the program's calls are led to the library:
// a block that is freed before that is not found, and what is freed after it is known. A block that
// a thread was just allocating or freeing may be there or not.
#ifndef TOOL_ATTACH_EXISTING_BLOCKS_H
#define TOOL_ATTACH_EXISTING_BLOCKS_H

#include "tool/attach/session.h"

// Does all that can be done while the process runs. `attach->uncounted_why` says what does not
// work.
void existing_blocks_prepare(struct attach *attach, const struct attach_request *request);

// Finds the blocks; all threads are stopped. False: the allocator's data is being changed, and
// another moment is better.
bool existing_blocks_find(struct attach *attach);

// Enters them, at the same stop, after the calls were redirected.
void existing_blocks_give(struct attach *attach);

// Forgets them, counted or not.
void existing_blocks_free(struct attach *attach);

#endif
