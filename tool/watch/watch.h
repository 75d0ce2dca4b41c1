// SPDX-License-Identifier: Apache-2.0
// Stands beside a program that is being recorded: gives each of its processes its memory, watches
// resident memory, writes checkpoints, and saves every recording when its process ends.
//
// One loop in one thread, and one thread that writes files (saver.h). The program never waits for
// them but for one message at each process' start.
#ifndef TOOL_WATCH_WATCH_H
#define TOOL_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"
#include "tool/watch/hello.h"
#include "tool/watch/process.h"
#include "tool/watch/saver.h"
#include "tool/watch/schedule.h"
#include "tool/watch/store.h"

// A program has been started and waits for its memory: what has to be done in it before it runs.
// `attachment`: as in struct cairn_hello.
typedef void watch_begin_fn(void *context, pid_t pid, uint64_t attachment);

struct watch {
    struct hello_desk desk;
    struct store *store;
    struct saver saver;
    pid_t main_pid;
    const char *name;      // of the program that was started, for its file
    const char *children;  // which other processes are recorded: NULL: all, else a pattern of
                           // their programs' names (fnmatch); "" is none
    struct schedule schedule;
    saver_log_fn *log;  // set between watch_open and watch_start; NULL: there is none
    void *log_context;
    watch_begin_fn *begin;  // set with it; NULL: nothing has to be done
    void *begin_context;
    bool has_quick_clock;  // set with it: the processes' clock moves every few ms (--ages)
    struct watched *list;
    unsigned process_count;  // of the list
    unsigned greeted_count;  // processes that were given a memory, ever
    uint8_t *pid_uses;       // by pid: processes that have had it
    struct pollfd *polled;
    struct watched **polled_processes;
    unsigned polled_room;
    uint64_t start_ns, next_checkpoint_ns;
    uint64_t unrecorded_count;      // programs that the library left alone
    struct cairn_hello unrecorded;  // what was said of the first
    struct error problem;           // first thing that went wrong while watching; empty text: none
};

// Opens the socket. The program is not started yet. `schedule` is what was asked for.
bool watch_open(struct watch *watch, struct store *store, const struct schedule *schedule,
                struct error *error);

// The program is about to start: the store's directory is there. `children` is as in the struct.
void watch_start(struct watch *watch, pid_t main_pid, const char *name, const char *children);

// Handles what happens until `signal_file` becomes readable or something is due.
void watch_turn(struct watch *watch, int signal_file);

// The main process has ended with `status` of waitpid; `rusage_peak_bytes` is 0 if unknown. Saves
// everything. Processes that go on are told to save their recordings themselves.
void watch_finish(struct watch *watch, int status, uint64_t rusage_peak_bytes);

void watch_close(struct watch *watch);

// A process that runs already, and will record into `memory_file`, a memfd of its own making: it is
// the watch's from now on. Instead of watch_start's main process.
struct watched *watch_adopt(struct watch *watch, pid_t pid, int memory_file, struct error *error);

// The process goes on and is not recorded any more, since it was left or became another program:
// what it recorded is kept.
void watch_let_go(struct watch *watch, struct watched *process, enum cairn_stop reason);

// Nothing is kept of the process: it did not come to record.
void watch_drop(struct watch *watch, struct watched *process);

#endif
