// SPDX-License-Identifier: Apache-2.0
// The shell that libc starts on its own, by system and popen: not through the wrappers of exec.c.
#ifndef RUNTIME_PRELOAD_EXEC_H
#define RUNTIME_PRELOAD_EXEC_H

#include <stdbool.h>

#include "format/hello.h"

struct exec_shell {
    enum cairn_unrecorded reason;  // why it will not be recorded; NONE: it will be, or is not there
    bool is_counted;               // as one process unrecorded: nobody else could say so
};

// Tells the tool, before it starts, of a shell with the process' own variables that will not be
// recorded. System calls only; from any thread.
struct exec_shell exec_note_shell(void);

// Withdraws that: it could not be started.
void exec_forget_shell(struct exec_shell shell);

#endif
