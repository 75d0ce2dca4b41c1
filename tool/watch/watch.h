// SPDX-License-Identifier: Apache-2.0
// The tool's side of a run: gives each process its memory, measures resident memory, writes
// checkpoints, and saves every recording when its process ends.
//
// One loop in one thread, and one thread that writes files (writer_thread.h). The program waits for
// them only for one message at each process' start.
#ifndef TOOL_WATCH_WATCH_H
#define TOOL_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/error.h"
#include "tool/watch/code_files.h"
#include "tool/watch/control.h"
#include "tool/watch/event_drain.h"
#include "tool/watch/run_directory.h"
#include "tool/watch/strangers.h"
#include "tool/watch/watched.h"
#include "tool/watch/writer_thread.h"

// A program has been started and waits for its memory: what has to be done in it before it runs.
// `attachment`: as in struct cairn_hello.
typedef void watch_begin_fn(void *context, pid_t pid, uint64_t attachment);

// A process says that it starts a static program, or could not, and waits for the answer.
typedef void watch_hear_fn(void *context, pid_t pid, const struct cairn_hello *message);

// The only process that recorded is over; its memory, which is the callee's from then on, and how
// it ended. In the watch's thread, while the recording is saved.
typedef void watch_over_fn(void *context, struct memory *memory, const struct memory_end *end);

struct watch {
    struct handshake_listener listener;
    struct run_directory *directory;
    struct writer_thread writer;
    pid_t main_pid;
    const char *name;      // of the program that was started, for its file
    const char *children;  // which other processes are recorded: NULL: all, else a pattern of
                           // their programs' names (fnmatch); "" is none
    struct schedule schedule;
    writer_log_fn *log;  // set between watch_open and watch_start; NULL: there is none
    void *log_context;
    watch_begin_fn *begin;  // set with it; NULL: nothing has to be done
    void *begin_context;
    watch_hear_fn *hear_static;  // set with it; NULL: none is recorded
    void *hear_context;
    watch_over_fn *over;  // set with it; NULL: nobody wants to know
    void *over_context;
    struct last_look last_look;  // set with it
    uint64_t caller_due_ns;      // when the caller has work (CLOCK_MONOTONIC): watch_turn waits no
                                 // longer; 0: it has none
    struct event_drain *drain;   // set with it; NULL: there can be no event logs
    bool has_quick_clock;        // set with it: the processes' clock moves every few ms (--ages)
    struct watched *list;
    unsigned process_count;  // of the list
    unsigned greeted_count;  // processes that were given a memory, ever
    uint8_t *pid_uses;       // by pid: processes that have had it
    struct pollfd *polled;
    struct watched **polled_processes;
    unsigned polled_room;
    uint64_t start_ns, next_checkpoint_ns;
    uint64_t checkpoint_pause_ns;    // behind the next checkpoint
    struct code_files files;         // of the processes' own modules
    struct cairn_left_out left_out;  // programs that were started and not recorded
    struct strangers strangers;      // those that nobody told of
    const char *variables;           // set with `begin`: those of the run, each NAME=VALUE and a
                                     // NUL, an empty one ends; NULL: nobody may ask for them
    struct error problem;            // first thing that went wrong while watching; empty text: none
};

// Opens the socket. The program is not started yet. `schedule` is what was asked for.
bool watch_open(struct watch *watch, struct run_directory *directory,
                const struct schedule *schedule, struct error *error);

// The program is about to start, and the run's directory is made. `children` is as in the
// struct.
void watch_start(struct watch *watch, pid_t main_pid, const char *name, const char *children);

// Handles what happens until `signal_file` becomes readable or something is due.
void watch_turn(struct watch *watch, int signal_file);

// The main process has ended with `status` of waitpid; `rusage_peak_bytes` is 0 if unknown. Saves
// everything. Processes that go on save their recordings themselves from then on.
void watch_finish(struct watch *watch, int status, uint64_t rusage_peak_bytes);

void watch_close(struct watch *watch);

// Adds a process that runs already, and will record into `memory_file`, a memfd of its own making:
// it is the watch's from now on. `is_first`: it stands for watch_start's main process. `image`: how
// many programs it was before that were recorded. A `memory_file` of -1 is made here. NULL with an
// error, which is left as it was if the process is gone.
struct watched *watch_adopt(struct watch *watch, pid_t pid, uint64_t image, bool is_first,
                            int memory_file, struct error *error);

// The process of that pid that is recorded; NULL: none. It is gone once its process has ended, and
// watch_turn took note.
struct watched *watch_find(const struct watch *watch, pid_t pid);

// Program `pid`, of which `teller` said that it would not be recorded, will be.
void watch_take_back(struct watch *watch, pid_t pid, pid_t teller,
                     const struct cairn_hello *message);

// Whether a process that had that pid was given a memory.
bool watch_has_recorded(const struct watch *watch, pid_t pid);

// The process has become another program, which does not record: what it recorded is kept if it
// says something.
void watch_replaced(struct watch *watch, struct watched *process);

// The process goes on and is not recorded any more, since it was left or became another program:
// what it recorded is kept.
void watch_let_go(struct watch *watch, struct watched *process, enum cairn_stop reason);

// Nothing is kept of the process: it did not come to record.
void watch_drop(struct watch *watch, struct watched *process);

#endif
