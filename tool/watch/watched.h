// SPDX-License-Identifier: Apache-2.0
// One image of a recorded process as the tool sees it from outside: its memory, and what only the
// tool knows about it.
#ifndef TOOL_WATCH_WATCHED_H
#define TOOL_WATCH_WATCHED_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"
#include "tool/model/run_row.h"
#include "tool/watch/memory.h"
#include "tool/watch/rss.h"

struct watched {
    struct watched *next;
    pid_t pid;
    int pid_file;  // pidfd; -1 if the kernel gave none
    struct memory memory;
    struct memory_end end;
    struct rss rss;
    char file_name[NAME_MAX];  // within the run's directory
    char parent[NAME_MAX];     // file name of the process it is a fork of, or ""
    uint64_t image;            // 0, 1, … of its pid's exec chain
    bool is_first;             // of the program that was started
    bool has_file;             // belongs to the writer: something was written
    uint64_t held_bytes;       // of its table of modules that the watch has seen
    uint32_t logged_epoch;     // of the last snapshot that the log has
    uint32_t rules_met;        // of the schedule, a bit each
    uint64_t next_look_ns;     // when to look at its memory again
    uint64_t look_pause_ns;    // and after it
};

// What a run keeps of a process that says hardly anything: shells that execute something else,
// forks that only execute. They would leave hundreds of recordings.
bool watched_is_short_lived(const struct watched *process);

// Its figures, as far as they are known now. False if it has not begun to record.
bool watched_row(const struct watched *process, struct run_row *row);

bool watched_is_gone(const struct watched *process);

// Moves the clock that the process reads (cairn_control.clock_ms); `now_ns` is CLOCK_MONOTONIC.
void watched_publish_clock(const struct watched *process, uint64_t now_ns);

// Looks at the process' resident memory and processor time; keeps the highest values. `now_ns` is
// CLOCK_MONOTONIC, `most_pause_ns` the longest pause between pictures of its memory. Returns what
// was seen.
struct rss_now watched_look(struct watched *process, uint64_t now_ns, uint64_t most_pause_ns);

// The epoch of its last snapshot; 0: none.
uint32_t watched_last_snapshot(const struct watched *process);

// When it is over: its processor time and how it ended, if the kernel still tells.
void watched_look_at_end(struct watched *process);

// NAME.PID.cairn, with the image's number where there are several; `attempt` makes further names.
void watched_name(struct watched *process, const char *name, unsigned attempt);

void watched_free(struct watched *process);

#endif
