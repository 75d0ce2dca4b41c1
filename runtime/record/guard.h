// SPDX-License-Identifier: Apache-2.0
// Guard bands, composed: stand-ins for the real functions that lie between them and the hooks, so
// that hooks and events are the same with bands and without. Only where they are wanted
// (CAIRN_GUARD) do the pointers in `real` lead here.
//
//   program ── hook ── event ── stand-in (bands) ── the allocator
//
// A block without bands (from before, of the bootstrap, of an allocator's own functions) is not in
// the table and goes through unchanged; so does a request that there is no memory for with bands.
// Bands are looked at, never mended, where the block stays: what the program wrote is the
// program's.
#ifndef RUNTIME_RECORD_GUARD_H
#define RUNTIME_RECORD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/thread/gate.h"

// Blocks get bands from now on, as the settings want; once a process.
void guard_open(void);

// In a new recording: where damage is written down.
void guard_connect(void);
// In a forked child, before its parent's recording goes.
void guard_disconnect(void);

// The block was recorded for this cell.
void guard_note(const void *block, uint32_t cell);

// The block has bands.
bool guard_owns(const void *block);

// A block with bands in place of operator new's; NULL: that is asked.
void *guard_new(size_t size, size_t alignment);

// Looks at all blocks at the program's end.
void guard_end(void);

#endif
