// SPDX-License-Identifier: Apache-2.0
// The recording of a running process, mapped for writing: by its control words the tool asks for
// something, such as a snapshot of what every stack holds. The process is not stopped and need not
// answer: it reads the words when it allocates.
//
// Anyone who may write the memory may write anything there, and so may the process: nothing read
// from it is believed, and nothing written leads the runtime to an address.
//
// When a run is recorded, and which snapshots of it are kept without being asked for each: windows
// by time (--start-after, --record-for), marks at equal distances (--mark-every), rules on memory
// (--when). All of it is done from outside, through the control words of the recordings.
#ifndef TOOL_WATCH_CONTROL_H
#define TOOL_WATCH_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/base/error.h"
#include "tool/watch/watched.h"

struct control {
    struct cairn_header *header;  // the whole mapping
    uint64_t bytes;
};

// Maps the recording at `path`. False if it is none, may not be written, or its process is over.
bool control_open(const char *path, struct control *control, struct error *error);
void control_close(struct control *control);

// Nanoseconds since the recording began.
uint64_t control_age_ns(const struct cairn_header *header);

// A section by its kind, and the only entry of one; NULL: the recording has none.
struct cairn_section *control_section(const struct control *control, uint32_t kind);
void *control_entry(const struct control *control, uint32_t kind, size_t entry_bytes);

// One sample in so many bytes from now on. False if the process does not sample.
bool control_set_rate(const struct control *control, uint64_t rate_bytes, struct error *error);

// A log of every event (event_drain.h) begins with the process' next allocation, and ends after
// `for_ms`, or when it is said (0); or the one that is written ends. Waits a moment for both sides
// to have done so: `is_done` false, and no error, if the process allocates nothing meanwhile.
bool control_begin_log(const struct control *control, uint64_t for_ms, bool *is_done,
                       struct error *error);
bool control_stop_log(const struct control *control, bool *is_done, struct error *error);
// Without waiting.
void control_end_log(struct cairn_header *header);
// The process has to do yet what is wanted: who takes the log tells it to look.
bool control_log_is_due(const struct cairn_header *header);

// Switches recording off or on. Returns whether it was off.
bool control_set_off(struct cairn_header *header, bool is_off);

// `header` is a raw recording of `mapped_bytes`, mapped for writing. The reason is
// CAIRN_SNAPSHOT_ASKED or CAIRN_SNAPSHOT_MARK (which begins a generation); `label` may be "", and
// is cut if it is too long. False: the recording is damaged, has no room for another snapshot, or
// the process was stopped while it took one itself.
bool control_take_snapshot(struct cairn_header *header, uint64_t mapped_bytes,
                           enum cairn_snapshot_reason reason, const char *label,
                           struct error *error);

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

#endif
