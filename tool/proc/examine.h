// SPDX-License-Identifier: Apache-2.0
// Checks a running process before anything is done to it: whether it can be attached to or read.
#ifndef TOOL_PROC_EXAMINE_H
#define TOOL_PROC_EXAMINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "tool/base/error.h"

struct examined {
    bool has_filter;  // a seccomp filter is in force
    bool has_musl;    // its interpreter (PT_INTERP) is musl's, which is its libc as well
};

// False, with a clause, on a kind of processor for which calls into a program and changes of its
// code were never run on a real one. `is_anyway`: they may be tried.
bool examine_processor(bool is_anyway, struct error *error);

// False, with a clause that says why, if the process cannot be attached to. `is_anyway`: not for a
// seccomp filter.
bool examine(pid_t pid, bool is_anyway, struct examined *examined, struct error *error);

// The same if it is only to be stopped and read, which takes less.
bool examine_to_read(pid_t pid, struct error *error);

// Fills in, with its number, why nothing of a process can be read: it has ended, is the kernel's,
// or may not be. Returns false.
bool examine_absence(pid_t pid, struct error *error);

// The number that the process has for itself, in its own pid namespace; 0: it has ended.
pid_t examine_own_pid(pid_t pid);

// Tells by the text of /proc/PID/status that a shadow stack is in force: a return to where no call
// came from would end the process.
bool examine_shadow_stack(const char *status);

#endif
