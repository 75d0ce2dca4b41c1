// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of a process or thread in its `stat` file, proc_pid_stat(5).
#ifndef TOOL_BASE_PROCESS_H
#define TOOL_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

// The state of thread `tid` of process `pid`, of its main thread if `tid` is 0: one of the letters
// of proc_pid_stat(5), such as 'R', 'S', 'T'; 0 if there is no such thread or it cannot be read.
char process_state(pid_t pid, pid_t tid);

// Whether it is no more or only waits for being reaped. `state` is what process_state gave.
bool process_has_ended(char state);

#endif
