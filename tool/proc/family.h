// SPDX-License-Identifier: Apache-2.0
// A process and those that descend from it, as they come and go.
//
// The kernel only says who the parent of a process is now: when a process ends, its children get
// another one. So a member is kept as long as it lives, and a new one is found if its parent was a
// member at the last look. A process whose parent came and ended between two looks is not found; a
// caller that knows of it adds it.
//
// A pid may be used again: a member is a pid and the time at which it was born.
#ifndef TOOL_PROC_FAMILY_H
#define TOOL_PROC_FAMILY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"

struct family_member {
    pid_t pid;
    uint64_t born;  // family_born
};

struct family {
    ARRAY(struct family_member) members;  // all that lived at the last look
};

// When a process was born, in clock ticks since the system's start; 0: it has ended, even if its
// parent has not taken note of it.
uint64_t family_born(pid_t pid);

// How long ago that was.
uint64_t family_age_ns(uint64_t born);

// False: it has ended. One that is a member already stays one.
bool family_add(struct family *family, pid_t pid);

// Leaves out those that have ended and adds descendants, also those of members that have ended
// since the last look. It reads a file of each process on the machine.
void family_look(struct family *family);

bool family_has(const struct family *family, pid_t pid, uint64_t born);

void family_free(struct family *family);

#endif
