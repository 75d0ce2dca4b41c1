// SPDX-License-Identifier: Apache-2.0
// Programs of a run that nobody told of, since they were started by a system call instruction or
// in another way that the library does not see: children of recorded processes, and images of
// theirs, in which the library is not mapped. They are found by looking, so only those that live a
// few seconds are.
#ifndef TOOL_WATCH_STRANGERS_H
#define TOOL_WATCH_STRANGERS_H

#include <stdint.h>
#include <sys/types.h>

#include "format/hello.h"
#include "tool/base/array.h"
#include "tool/watch/watched.h"

struct stranger {
    pid_t pid;
    uint64_t born;       // family_born
    uint32_t looks;      // at which it was one
    uint64_t last_look;  // by number
    bool is_known;       // it was told of, or is named
};

struct strangers {
    ARRAY(struct stranger) list;
    uint64_t look_count, next_look_ns;
};

// The run in which they are.
struct strangers_run {
    struct watched *list;                // recorded processes
    const struct cairn_left_out *named;  // programs that were not recorded
    void (*note)(void *context, pid_t pid, const struct cairn_hello *message);
    void *context;
};

// Looks, if it is time, and notes what it finds as if the process itself had said it.
void strangers_look(struct strangers *strangers, const struct strangers_run *run, uint64_t now_ns);

// Process `pid`, `teller` if it is recorded, says that it starts an unrecorded program or becomes
// one: that is not to be named twice.
void strangers_told(struct strangers *strangers, struct watched *teller, pid_t pid,
                    const struct cairn_hello *message);

// Process `pid` will be recorded, though it has nothing yet that says so.
void strangers_know(struct strangers *strangers, pid_t pid);

#endif
