// SPDX-License-Identifier: Apache-2.0
// Stands beside a program that is being recorded: gives each of its processes its memory, watches
// resident memory, writes checkpoints, and saves every recording when its process ends.
//
// One loop, one thread. The program never waits for it but for one message at each process' start.
#ifndef TOOL_WATCH_WATCH_H
#define TOOL_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"
#include "tool/watch/memory.h"
#include "tool/watch/store.h"

#define WATCH_SOCKET_NAME_MAX 64

// A process that records, or the first image of a pid that has since replaced itself.
struct watched {
    struct watched *next;
    pid_t pid;
    int pid_file;  // pidfd; -1 once the process is gone
    struct memory memory;
    struct memory_end end;
    char file_name[NAME_MAX];
    bool is_first;   // of the program that was started
    uint64_t image;  // 0, 1, … of its pid's exec chain
};

struct watch {
    int listener;
    char socket_name[WATCH_SOCKET_NAME_MAX];
    struct store *store;
    pid_t main_pid;
    const char *name;  // of the program, for file names
    struct watched *list;
    unsigned saved_count;     // recordings kept
    uint64_t rss_peak_bytes;  // highest resident memory seen of the main process
    uint64_t start_ns, next_checkpoint_ns;
    struct error problem;  // first thing that went wrong while watching; empty text: none
};

// Opens the socket. The program is not started yet.
bool watch_open(struct watch *watch, struct store *store, struct error *error);

// Handles what happens until `signal_file` becomes readable or `timeout_ms` passes.
void watch_turn(struct watch *watch, int signal_file, int timeout_ms);

// The main process has ended with `status` of waitpid: saves everything. Processes that go on are
// told to save their recordings themselves.
void watch_finish(struct watch *watch, int status, uint64_t rusage_peak_bytes);

void watch_close(struct watch *watch);

uint64_t watch_now_ns(void);

#endif
