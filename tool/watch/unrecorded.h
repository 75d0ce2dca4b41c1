// SPDX-License-Identifier: Apache-2.0
// Programs of a run that are not recorded: which recording tells of them. Apart from watch.c, which
// has enough to do with those that are.
#ifndef TOOL_WATCH_UNRECORDED_H
#define TOOL_WATCH_UNRECORDED_H

#include "format/hello.h"
#include "tool/watch/watched.h"

// A message that one of the recorded processes, `pid`, said of a program that it starts, or
// becomes.
struct unrecorded {
    struct watched *list;  // all recorded processes
    pid_t main_pid, pid;
    const struct cairn_hello *message;
    const char *children;  // which programs the user wants to know of (struct watch)
};

// Notes it in the recording that is to tell of it, and in the sum of the run.
void unrecorded_note(const struct unrecorded *said, struct cairn_left_out *run);

// Takes out of an image that nothing is kept of what it started, for the next image to tell.
struct cairn_left_out unrecorded_take(struct watched *process);

#endif
