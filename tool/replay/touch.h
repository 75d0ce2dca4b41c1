// SPDX-License-Identifier: Apache-2.0
// How far the program wrote into its blocks of a page and more, by what the tool saw of their pages
// as the log was taken. That says something of a block's own, whole pages, where no block had been
// before: others may be resident since an older block was written to.
#ifndef TOOL_REPLAY_TOUCH_H
#define TOOL_REPLAY_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/base/array.h"
#include "tool/events/live_blocks.h"
#include "tool/events/turns.h"

// Parts of a block's length.
enum { TOUCH_PARTS = 8 };

struct touch {
    uint64_t page_bytes;   // of the log
    bool is_late;          // blocks from before the log lay anywhere
    struct turns covered;  // by 32 pages: which of them a block has had
    struct turns cells;    // by cell: its entry below, + 1
    ARRAY(struct touch_cell) seen;
    ARRAY(struct touch_block) blocks;  // that were looked at; by number after touch_end
    size_t next_block;
};

// Follows an allocation, to `block`, which was made of `freed` (NULL: of none). False without
// memory.
bool touch_follow(struct touch *touch, struct live_block *block, const struct live_block *freed);

// A look (event_is_look); `block` lives there, or NULL. False without memory.
bool touch_look(struct touch *touch, const struct event *event, const struct live_block *block);

// All was followed. False without memory.
bool touch_end(struct touch *touch);

// Something was seen, after touch_end.
bool touch_is_known(const struct touch *touch);

// The first bytes of an allocation that are touched, of the allocations in their order after
// touch_end. False: not known. `is_assumed`: blocks of its stack were seen only where older ones
// had been, and count as far as those pages were resident, whoever wrote to them.
bool touch_bytes(struct touch *touch, uint64_t number, const struct event *event, uint64_t *bytes,
                 bool *is_assumed);

void touch_free(struct touch *touch);

#endif
