// SPDX-License-Identifier: Apache-2.0
// An event log as calls for the driver (format/replay.h): a file that it maps.
#ifndef TOOL_REPLAY_SCRIPT_H
#define TOOL_REPLAY_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/events/event_log.h"

// What of a block is touched: all, nothing, or so much as of others of its stack was, which is an
// error where the log does not know, or all then.
enum script_touch { TOUCH_ALL, TOUCH_NONE, TOUCH_RECORDED, TOUCH_AS_KNOWN };

struct script_options {
    bool is_one_thread, is_timed;
    enum script_touch touch;
    uint32_t freed_percent;
};

struct script {
    int file;
    uint64_t bytes;
    uint32_t thread_count, block_count;
    uint64_t call_count;
    uint64_t unknown_count;  // frees of blocks that are not known: left out
    uint64_t assumed_count;  // frees that are missing: made up where the address is given again
    bool is_touch_recorded;
    uint64_t assumed_touch_bytes;  // in places of older blocks: as far as these were resident
    uint64_t page_block_bytes, known_touch_bytes;  // of blocks of a page and more: allocated, and
                                                   // of these by stacks whose pages were looked at
    uint64_t mapping_count;                        // mmap and munmap of the program: left out
    uint64_t peak_live_bytes;
    uint32_t page_bytes;         // of this machine
    struct event_log_facts log;  // what it is made of
};

// False if there is no room, or the log is damaged.
bool script_make(struct event_log *log, const struct script_options *options, struct script *script,
                 struct error *error);
void script_close(struct script *script);

#endif
