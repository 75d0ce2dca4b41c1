// SPDX-License-Identifier: Apache-2.0
// Another process as the kernel describes it below /proc/PID: its files, its state, its name, its
// threads. This is the one place that builds such paths.
#ifndef TOOL_PROC_PROCESS_H
#define TOOL_PROC_PROCESS_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/base/process_name.h"

enum { PROCESS_PATH_BYTES = 64 };

// Bytes of a page of this machine's kernel, so of every process below /proc.
uint64_t process_page_bytes(void);

// Writes "/proc/PID/FILE" to `path` and returns it; "" as `file` gives the directory.
const char *process_path(char path[PROCESS_PATH_BYTES], pid_t pid, const char *file);

// Opens a file below /proc/PID with O_CLOEXEC; -1 or NULL and errno on failure.
int process_open(pid_t pid, const char *file, int flags);
FILE *process_open_text(pid_t pid, const char *file);

// The path of this program; without /proc the one that the kernel was asked to execute, made
// absolute. False if neither is known.
bool process_own_executable(char path[PATH_MAX]);

// Reads a file below /proc/PID as a text, terminated. Returns its length, 0 if there is none.
size_t process_read(pid_t pid, const char *file, char *text, size_t size);

// Reads the target of a link below /proc/PID; the same otherwise.
size_t process_link(pid_t pid, const char *file, char *target, size_t size);

// Finds an entry of the auxiliary vector (AT_ENTRY and so on, getauxval(3)). False: there is none,
// or it cannot be read.
bool process_auxiliary(pid_t pid, uint64_t type, uint64_t *value);

// The value behind "NAME:" and blanks in the text of /proc/PID/status; "" without such a line.
const char *process_field(const char *status, const char *name);

// Fields of /proc/PID/stat (proc_pid_stat(5)).
struct process_stat {
    char state;
    pid_t parent;
    uint64_t ticks;  // of processor time, user and system
    long thread_count;
    uint64_t born;      // clock ticks since the system's start
    int exit_code;      // of a process that has ended, in the form of wait(2)
    bool is_of_kernel;  // a thread of the kernel
};

// False if it cannot be read.
bool process_stat(pid_t pid, struct process_stat *stat);

// The state of thread `tid` of process `pid`, of its main thread if `tid` is 0: one of the letters
// of proc_pid_stat(5), such as 'R', 'S', 'T'; 0 if there is no such thread or it cannot be read.
char process_state(pid_t pid, pid_t tid);

// Checks that so many files can be opened beside those that are: at most PROCESS_FILES_MAX. False
// with a clause.
enum { PROCESS_FILES_MAX = 1024 };
bool process_can_open(size_t count, struct error *error);

// Says why nothing of a process can be read: it has ended, if files can be opened at all. Returns
// false.
bool process_say_unreadable(struct error *error);

// Whether there is a /proc to look in: small containers have none.
bool process_can_look(void);

// Parent of a process; 0: unknown.
pid_t process_parent(pid_t pid);

// Whether a process in this state (of process_state) has ended; a zombie has.
bool process_has_ended(char state);

// The name of its main thread as the kernel keeps it; "" if it cannot be read.
void process_comm(pid_t pid, char comm[PROCESS_COMM_BYTES]);

// The name of process_name_choose; false if the process cannot be read.
bool process_name(pid_t pid, char name[NAME_MAX]);

// All names by which a user may mean the process: the one above, its executable's, its comm, and
// its first argument's. False if none can be read.
enum { PROCESS_NAMES = 4 };
bool process_names(pid_t pid, char names[PROCESS_NAMES][NAME_MAX]);

// Iterates over all processes, or over the threads of one.
struct process_list {
    DIR *directory;
};

// False with errno on failure; the list is empty then.
bool process_list_all(struct process_list *list);
bool process_list_threads(struct process_list *list, pid_t pid);
pid_t process_list_next(struct process_list *list);  // 0: the end
void process_list_close(struct process_list *list);

// Processes by number. The list is for array_free.
struct process_pids {
    ARRAY(pid_t) pids;
};
void process_pids_sort(struct process_pids *list);
bool process_pids_has(const struct process_pids *list, pid_t pid);  // of one that is sorted

// Whether a living process has this text ("NAME=VALUE") in its environment. `after`: only processes
// whose numbers were given after that one, not so long ago that all numbers may have been used up
// since; 0: all.
bool process_any_with_variable(const char *variable, pid_t after);

#endif
