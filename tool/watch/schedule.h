// SPDX-License-Identifier: Apache-2.0
// When a run is recorded, and which snapshots of it are kept without being asked for each: windows
// by time (--start-after, --record-for), marks at equal distances (--mark-every), rules on memory
// (--when). All of it is done from outside, through the control words of the recordings.
#ifndef TOOL_WATCH_SCHEDULE_H
#define TOOL_WATCH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/watch/watched.h"

#define SCHEDULE_RULES_MAX 16
#define SCHEDULE_RULE_BYTES 32

enum schedule_value { SCHEDULE_RSS, SCHEDULE_HEAP, SCHEDULE_SWAP };

// "rss>80%": when the value is above the limit.
struct schedule_rule {
    char text[SCHEDULE_RULE_BYTES];  // as it was given: the label of the snapshot
    enum schedule_value value;
    double share;    // of the memory limit; 0: `bytes`
    uint64_t bytes;  // of the limit, from the start on
};

struct schedule {
    // as it was asked for
    bool is_off_at_start;
    uint64_t start_after_ns, record_for_ns, mark_every_ns;  // 0: not
    struct schedule_rule rules[SCHEDULE_RULES_MAX];
    unsigned rule_count;

    bool is_off;                                // of processes whose parent is not recorded
    bool is_over;                               // the window has closed
    uint64_t start_ns, on_ns, off_ns, mark_ns;  // CLOCK_MONOTONIC; 0: not due
    struct error problem;                       // first thing that went wrong; empty text: none
};

// Adds "rss>80%", "heap>1.5G", "swap>0". False: it is not of that form, or there are too many.
bool schedule_add_rule(struct schedule *schedule, const char *text, struct error *error);

// The run begins: shares become bytes, times become absolute.
void schedule_start(struct schedule *schedule, uint64_t now_ns);

// The earliest time at which something is due; UINT64_MAX: never.
uint64_t schedule_due_ns(const struct schedule *schedule);

// What is due by time, for all processes of the list.
void schedule_turn(struct schedule *schedule, struct watched *list, uint64_t now_ns);

// What the rules say of one process, whose memory was just looked at.
void schedule_look(struct schedule *schedule, struct watched *list, struct watched *process,
                   const struct rss_now *now, uint64_t now_ns);

// The memory that the process of the tool and its children may take: the least of the limits of its
// cgroups, RLIMIT_AS and the machine's memory.
uint64_t schedule_memory_limit(void);

#endif
