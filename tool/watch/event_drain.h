// SPDX-License-Identifier: Apache-2.0
// Takes the chunks of event logs from the memory of recorded processes and writes them into files:
// a thread of its own, since the program may fill chunks faster than anything else is looked at. It
// also moves the clock that the events go by.
//
// A log that somebody switches on while the process runs begins with the blocks that live then,
// from its live map (live_at_start.h).
//
// The log of the program's first process lies beside the run, those of others in its directory. A
// file is made when there is something to write.
#ifndef TOOL_WATCH_EVENT_DRAIN_H
#define TOOL_WATCH_EVENT_DRAIN_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "tool/base/error.h"
#include "tool/watch/run_directory.h"
#include "tool/watch/watched.h"

struct drained;

// What was asked for.
struct event_drain_wish {
    const char *path;     // where the first process' log goes; NULL: beside the run
    bool is_from_start;   // else processes are logged once somebody wants it (cairn ctl)
    uint64_t for_ms;      // a log from the start ends after so long; 0: with the process
    uint64_t keep_bytes;  // only the last part of each log is kept; 0: all
};

struct event_drain {
    const struct run_directory *directory;
    struct event_drain_wish wish;
    char path[PATH_MAX];  // of the first process' log; "": by that of the run
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t has_ended;
    struct drained *list;  // (lock)
    bool is_ending;        // (lock)
    bool has_thread;
    char first_log[PATH_MAX];  // of the first process, once it is written; read after that
    unsigned log_count;        // that were written, likewise
    struct error problem;      // the first, likewise; empty: none
};

// Before the program starts.
bool event_drain_open(struct event_drain *drain, const struct event_drain_wish *wish,
                      struct error *error);
void event_drain_start(struct event_drain *drain, const struct run_directory *directory);
// Now and then: starts the thread once a process is to have a log.
void event_drain_look(struct event_drain *drain, const struct watched *list);
void event_drain_stop(struct event_drain *drain);

void event_drain_add(struct event_drain *drain, struct watched *process);
// The process ends, and waits meanwhile for a last look at which of its pages are touched.
void event_drain_last_look(struct event_drain *drain, const struct watched *process);
// It is over, or is left: what its log still has is taken, and the log closed. If the recording is
// not kept, neither is the log.
void event_drain_end(struct event_drain *drain, struct watched *process, bool is_kept);

#endif
