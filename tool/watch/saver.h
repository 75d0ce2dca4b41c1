// SPDX-License-Identifier: Apache-2.0
// Writes recordings in a thread of its own, so that a large one never keeps a program waiting that
// says hello. Work is done in the order in which it was given: a process' end comes after its
// checkpoints, and what was given away as ended or released belongs to the saver.
#ifndef TOOL_WATCH_SAVER_H
#define TOOL_WATCH_SAVER_H

#include <pthread.h>

#include "tool/watch/process.h"
#include "tool/watch/store.h"

enum saver_work {
    SAVER_CHECKPOINT,  // the process goes on and stays the caller's
    SAVER_END,         // keep what it recorded
    SAVER_DROP,        // keep nothing
    SAVER_LOG,         // the process goes on: a block of the log
    SAVER_RELEASE,     // it goes on without the tool: keep what there is, it writes the rest
};

struct saver_job;

// Writes a block of the log about a process (cmds/run_log.h).
typedef bool saver_log_fn(void *context, const struct watched *process, struct error *error);

struct saver {
    struct store *store;
    saver_log_fn *log;  // NULL: there is none
    void *log_context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct saver_job *first, *last;  // (lock)
    bool is_ending;                  // (lock)
    bool has_thread;
    bool has_released;     // read after saver_finish: a process may still write into the run
    struct error problem;  // first thing that went wrong, read after saver_finish; empty: none
};

void saver_start(struct saver *saver, struct store *store, saver_log_fn *log, void *log_context);
void saver_give(struct saver *saver, enum saver_work work, struct watched *process);
// True while work is left.
bool saver_is_busy(struct saver *saver);
// Does what is left and ends the thread.
void saver_finish(struct saver *saver);

#endif
