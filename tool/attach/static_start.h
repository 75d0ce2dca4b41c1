// SPDX-License-Identifier: Apache-2.0
// A static program is recorded from its start: it is held at its first instruction, gets
// libcairn-bare.so, and its functions that allocate are led there by jumps (patch.h).
//
// ptrace belongs to a thread of the tool: the one that forked the program calls all of this. Should
// the tool be killed before the process has become the program, it does not begin; afterwards it
// begins, and is not recorded unless all is in its place.
#ifndef TOOL_ATTACH_STATIC_START_H
#define TOOL_ATTACH_STATIC_START_H

#include <stdbool.h>
#include <sys/types.h>

#include "tool/base/error.h"

// Before the process becomes the program. False, with the reason: it cannot be held.
bool static_start_hold(pid_t pid, struct error *error);

// After it was told to: waits until it stands at its first instruction. False: it has ended before,
// or is let go since it has become another program, a dynamic one.
bool static_start_await(pid_t pid);

// Puts the library into it. `variables`: those of the run, as launch_text has them, for a program
// whose starter left them out; NULL: it has its own. False, with a clause: it is as it was.
bool static_start_record(pid_t pid, const char *library, const char *variables,
                         struct error *error);

// Lets it run.
void static_start_go(pid_t pid);

#endif
