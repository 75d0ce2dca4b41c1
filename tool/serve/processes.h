// SPDX-License-Identifier: Apache-2.0
// What is served: one process, one recording, or all recorded processes of the machine or of a
// cgroup as they come and go.
//
// The recording of a running process is held open: so it can be read to its end and beyond, and no
// number is ever that of another process. Following births and deaths costs a list of pids a turn;
// a process that is not recorded is looked at again later and later, since it may be attached to.
#ifndef TOOL_SERVE_PROCESSES_H
#define TOOL_SERVE_PROCESSES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/export/metrics.h"
#include "tool/proc/cgroup.h"

struct served {
    struct cgroup_place place;  // where it was when it was found
    pid_t pid;                  // 0: a recording in a file
    char name[NAME_MAX];
    char path[64];          // by which its recording is opened; of a file see processes_path
    int file;               // held open; -1: it is a file
    unsigned serial;        // tells it from any other one that had this pid
    uint64_t random_at;     // AT_RANDOM: another one after an exec; 0: not known
    uint64_t frees_most;    // a counter never falls, though what samples estimate may
    uint64_t next_look_ns;  // when an exec, or what took its place, is looked for again
    bool is_over;           // it has ended, or executed another program
};

struct seen {
    pid_t pid;
    uint64_t next_ns, wait_ns;  // when it is looked at again
};

enum processes_scope { SERVE_ONE, SERVE_FILE, SERVE_ALL, SERVE_CGROUP };

struct processes {
    enum processes_scope scope;
    char word[PATH_MAX];            // pid, name, file or cgroup
    struct cgroup cgroup;           // of SERVE_CGROUP
    ARRAY(struct served) list;      // by pid
    ARRAY(struct seen) unrecorded;  // by pid
    unsigned last_serial;
};

// `word`: of one process or file. False if there is none.
bool processes_open(struct processes *processes, enum processes_scope scope, const char *word,
                    struct error *error);
void processes_close(struct processes *processes);

// There may be none, or several.
bool processes_are_many(const struct processes *processes);

// Looks for births and deaths.
void processes_follow(struct processes *processes, uint64_t now_ns);

// Reads the memory of the cgroup that is served, with texts that stay valid. False: of none, or the
// kernel does not account for it.
bool processes_cgroup(const struct processes *processes, struct metrics_cgroup *metrics);

// Valid until the next look; NULL: there is none. The one that is served alone has any pid.
struct served *processes_find(struct processes *processes, pid_t pid);
struct served *processes_only(struct processes *processes);

const char *processes_path(const struct processes *processes, const struct served *served);

// Whether it runs: its recording goes on, it is there, and it is the program that it was.
bool processes_is_running(struct served *served);

// Its figures now; false if its recording cannot be read.
bool processes_figures(const struct processes *processes, struct served *served,
                       struct metrics_process *figures, struct error *error);

#endif
