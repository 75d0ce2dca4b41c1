// SPDX-License-Identifier: Apache-2.0
// One image of a recorded process as the tool sees it from outside: its memory, and what only the
// tool knows about it.
//
// It introduces itself at a listening socket, for the start-up handshake (struct cairn_hello), in
// the abstract name space. A process blocks for one reply, so a silent or broken client never
// delays others.
#ifndef TOOL_WATCH_WATCHED_H
#define TOOL_WATCH_WATCHED_H

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "format/hello.h"
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
    uint32_t told_count;       // unrecorded programs that it told of and that were not seen yet
    uint64_t replaced_ns;      // (CLOCK_MONOTONIC) it became a program that is not recorded; 0: no
    uint64_t held_bytes;       // of its table of modules that the watch has seen
    void *taken;               // at its end (struct last_look); NULL: nothing
    uint32_t logged_epoch;     // of the last snapshot that the log has
    uint32_t rules_met;        // of the schedule, a bit each
    uint64_t next_look_ns;     // when to look at its memory again
    uint64_t look_pause_ns;    // and after it
};

// What is done with the memory of a process that ends by itself; all NULL: nothing.
struct last_look {
    void *context;
    // While the process waits, in the watch's thread. Returns what `taken` becomes, and frees what
    // it was, unless that is a part of it.
    void *(*take)(void *context, struct watched *process);
    // While the process runs, in the watch's thread, which has just seen its memory: takes a look
    // if one is due, and returns true if the writer is to study it. NULL: there are no such looks;
    // otherwise `take` takes the last picture of resident memory, too.
    bool (*take_early)(void *context, struct watched *process, const struct rss_now *now);
    // In the writer's thread, when `path` has a checkpoint from behind the look; NULL: it has none.
    void (*study)(void *context, const struct watched *process, const char *path);
    // When its file is written, in the writer's: of every process, also if nothing was taken.
    // `path` NULL: it has no file. Frees what was taken.
    bool (*keep)(void *context, const struct watched *process, const char *path,
                 struct error *error);
};

// What a run keeps of a process that says hardly anything: shells that execute something else,
// forks that only execute. They would leave hundreds of recordings.
bool watched_is_short_lived(const struct watched *process);

// True if nothing is kept of the process: it says hardly anything, not even of others.
bool watched_is_worthless(const struct watched *process, bool is_replaced);

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

#define HANDSHAKE_NAME_MAX 64
#define HANDSHAKE_SILENT_MAX 256  // connections that have sent nothing yet

struct handshake_client {
    int connection;
    pid_t pid;  // by the kernel
    uint64_t since_ns;
};

struct handshake_listener {
    int socket;
    int reserve;  // a descriptor to give up when there is no other, to refuse a client at once
    char name[HANDSHAKE_NAME_MAX];  // for CAIRN_SOCKET
    uint64_t number;                // in the name (format/run_mark.h)
    struct handshake_client silent[HANDSHAKE_SILENT_MAX];
    unsigned silent_count;
};

bool handshake_open(struct handshake_listener *listener, struct error *error);
// Closes the socket and all connections.
void handshake_close(struct handshake_listener *listener);

// Fills a poll set with the listener and the silent clients; returns how many, at most
// HANDSHAKE_SILENT_MAX + 1.
unsigned handshake_poll_set(const struct handshake_listener *listener, struct pollfd *polled);

// Takes the next client with a well-formed message, without waiting; call until it returns false.
// Each has to be answered.
bool handshake_next(struct handshake_listener *listener, uint64_t now_ns,
                    struct handshake_client *client, struct cairn_hello *message);

// Closes the connection without an answer: the process writes its recording itself.
void handshake_dismiss(const struct handshake_client *client);
// Sends a text, its NUL bytes too, and closes the connection.
void handshake_answer_text(const struct handshake_client *client, const char *text, size_t bytes);
// The same of variables, each of which ends in NUL, an empty one ends; NULL: dismisses it.
void handshake_answer_variables(const struct handshake_client *client, const char *variables);
// Sends a memfd, or -1 for "do not record", perhaps cairn's executable, and closes the connection.
void handshake_answer(const struct handshake_client *client, int memory_file, bool has_executable);

// Looks whether processes that outlive the main one, such as daemons forked a moment ago, may
// begin to record: they still have the name of the socket in their environment.
bool handshake_has_orphans(const struct handshake_listener *listener, uint64_t start_ns,
                           pid_t main_pid);

#endif
