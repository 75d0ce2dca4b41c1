// SPDX-License-Identifier: Apache-2.0
// Programs of a run that are not recorded: which recording tells of them. Apart from watch.c, which
// has enough to do with those that are.
#ifndef TOOL_WATCH_UNRECORDED_H
#define TOOL_WATCH_UNRECORDED_H

#include "format/hello.h"
#include "tool/watch/watch.h"

// Notes what process `pid` said of a program that it starts, or becomes, unrecorded.
void unrecorded_note(struct watch *watch, pid_t pid, const struct cairn_hello *message);

// Takes out of an image that nothing is kept of what it started, for the next image to tell.
struct cairn_left_out unrecorded_take(struct watched *process);

#endif
