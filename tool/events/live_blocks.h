// SPDX-License-Identifier: Apache-2.0
// Which blocks live while a log is read, and what became of each: the frees of a log say nothing of
// the block but its address.
#ifndef TOOL_EVENTS_LIVE_BLOCKS_H
#define TOOL_EVENTS_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/events/event.h"

struct live_block {
    uint64_t address;  // 0: the place is empty
    uint64_t size, alignment;
    uint64_t number;  // of its allocation among those of the log, from 1
    uint64_t ms;
    uint32_t cell, thread;
    uint32_t tag;  // the caller's, as is_marked
    bool is_marked;
    bool is_taken;  // by a realloc that is not over
    bool is_there;  // it was there before the log
};

struct live_blocks {
    struct live_block *places;
    size_t room, count;  // room: a power of two
    uint64_t allocations;
    unsigned granule_shift;
};

// What an event did.
struct block_change {
    bool is_allocated, is_freed, is_failed;  // is_failed: realloc left the block as it was
    struct live_block allocated, freed;      // a realloc has both
    bool is_unknown;                         // an event of a block whose allocation is not known
    bool is_replaced;  // where one is allocated was another, whose free the log does not have; of
                       // one that was there: it was found when the log had begun
    struct live_block replaced;
};

void live_blocks_free(struct live_blocks *blocks);

// Says what is known already: a block that was there is told of by the map of that time, and again
// by the thread that takes it (live_at_start.h). It is no event.
bool live_blocks_is_again(const struct live_blocks *blocks, const struct event *event);

// Follows an event of event_log_next. False without memory.
bool live_blocks_follow(struct live_blocks *blocks, const struct event *event,
                        struct block_change *change);

// The block at that address; NULL: none.
struct live_block *live_blocks_find(const struct live_blocks *blocks, uint64_t address);

#endif
