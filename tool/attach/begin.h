// SPDX-License-Identifier: Apache-2.0
// Programs that cairn run starts, and an allocator that is linked into them: it is led to the
// library while a process waits for the answer to its first message, before its main function.
#ifndef TOOL_ATTACH_BEGIN_H
#define TOOL_ATTACH_BEGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tool/base/error.h"

enum { BEGIN_REMEMBERED = 64, BEGIN_NAME_BYTES = 256 };

// An executable that was looked at: it has no such allocator.
struct begin_file {
    dev_t device;
    ino_t number;
    struct timespec changed;
};

struct begin {
    struct begin_file files[BEGIN_REMEMBERED];
    unsigned file_count;  // all that were remembered; the last ones are there
    unsigned refused_count;
    char refused[BEGIN_NAME_BYTES];  // the first one's program
    struct error problem;            // and why
};

// `attachment`: the address of the process' struct cairn_attachment, as it says itself.
void begin_look(struct begin *begin, pid_t pid, uint64_t attachment);

#endif
