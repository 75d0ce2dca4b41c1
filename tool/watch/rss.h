// SPDX-License-Identifier: Apache-2.0
// Resident memory of a recorded process over time, and what it consisted of. Both are measured from
// outside and put into the recording while it is made (CAIRN_SECTION_RESIDENT and _PICTURES), so
// that they are kept however process and tool end.
//
// A value costs a read of /proc/PID/status, a picture one of smaps, during which the process cannot
// map memory: so pictures are taken when it has changed and now and then, and take a hundredth of
// the time at most, a twentieth of the first quarter of a second and where memory is higher than in
// any so far by a quarter. The last one is of the end, where the process waits for it
// (cairn_hello).
#ifndef TOOL_WATCH_RSS_H
#define TOOL_WATCH_RSS_H

#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/model/reader.h"
#include "tool/watch/memory.h"

// What /proc/PID/status says.
struct rss_now {
    uint64_t rss_bytes, swap_bytes;
    uint64_t peak_bytes;  // by the kernel's account; 0: the process is gone
};

struct rss {
    ARRAY(struct cairn_resident) values;  // as they are in the section
    uint64_t step_ns;                     // values lie this far apart at least
    struct cairn_picture pictures[CAIRN_PICTURE_COUNT];
    uint64_t next_picture_ns, next_other_ns, next_higher_ns;  // CLOCK_MONOTONIC
    uint64_t pause_ns;                                        // between pictures
    uint64_t listed_ns;  // that the last one took to list mappings, while there could be none more
    uint64_t cost_ns;    // that, and its processor time for the rest
};

struct rss_now rss_look(pid_t pid);

// Takes a picture of a process that this is the recording of, for a command that may take its time:
// it is the last one then. Nothing changes if the process is gone, or may not be read.
void rss_look_now(pid_t pid, struct recording *recording);

// Notes a look at `now_ns` (CLOCK_MONOTONIC), with a picture if one is due; `most_pause_ns` is the
// longest pause between pictures. The process may have damaged its header: then nothing is noted.
void rss_note(struct rss *rss, pid_t pid, const struct memory *memory, const struct rss_now *now,
              uint64_t now_ns, uint64_t most_pause_ns);

// Takes the last picture of a process that says that it ends and waits for that; not if such a
// picture takes too long to wait for.
void rss_end(struct rss *rss, pid_t pid, const struct memory *memory, uint64_t now_ns);

// Takes a picture that counts all that is free, where the user asked for a look at the heap.
void rss_look_long(struct rss *rss, pid_t pid, const struct memory *memory, uint64_t now_ns);

void rss_free(struct rss *rss);

#endif
