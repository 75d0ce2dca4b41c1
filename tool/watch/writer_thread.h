// SPDX-License-Identifier: Apache-2.0
// A thread that writes recordings, so that a large one never delays the handshake of a program. It
// works in the order in which it is given work: a process' end comes after its checkpoints. An
// ended or released process belongs to the writer.
#ifndef TOOL_WATCH_WRITER_THREAD_H
#define TOOL_WATCH_WRITER_THREAD_H

#include <pthread.h>

#include "tool/watch/event_drain.h"
#include "tool/watch/run_directory.h"
#include "tool/watch/watched.h"

enum writer_work {
    WRITER_CHECKPOINT,  // the process goes on and stays the caller's
    WRITER_END,         // keep what it recorded
    WRITER_DROP,        // keep nothing
    WRITER_LOOK,        // likewise, and study the look that was taken (struct last_look)
    WRITER_LOG,         // the process goes on: a block of the log
    WRITER_RELEASE,     // it goes on without the tool: keep what there is, it writes the rest
};

struct writer_job;

// Writes a block of the log about a process (cmds/run_log.h); `is_last`: it is over.
typedef bool writer_log_fn(void *context, const struct watched *process, bool is_last,
                           struct error *error);

struct writer_thread {
    struct run_directory *directory;
    writer_log_fn *log;  // NULL: there is none
    void *log_context;
    struct last_look last_look;
    struct event_drain *drain;  // NULL: there are no event logs
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct writer_job *first, *last;  // (lock)
    bool is_ending;                   // (lock)
    bool has_thread;
    bool has_released;  // read after writer_thread_finish: a process may still write into the run
    struct error
        problem;  // first thing that went wrong, read after writer_thread_finish; empty: none
};

void writer_thread_start(struct writer_thread *writer, struct run_directory *directory,
                         writer_log_fn *log, void *log_context, const struct last_look *last_look,
                         struct event_drain *drain);
void writer_thread_give(struct writer_thread *writer, enum writer_work work,
                        struct watched *process);
// True while work is left.
bool writer_thread_is_busy(struct writer_thread *writer);
// Does what is left and ends the thread.
void writer_thread_finish(struct writer_thread *writer);

#endif
