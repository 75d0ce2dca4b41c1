// SPDX-License-Identifier: Apache-2.0
// Static programs that a recorded process starts. Its library says so before it does, and waits
// for the answer: until then the tool has taken hold of the thread. That is stopped once it has
// become the program, as a program that the tool starts itself (static_start.h), and let go with
// the library in it. If libc makes the process (posix_spawn), it is the thread's next child that is
// held.
//
// ptrace belongs to a thread of the tool, which calls all of this and gets the stops by its
// wait4(-1). Nothing here waits. Should the tool be killed, the program goes on by itself
// (static_start.h).
#ifndef TOOL_ATTACH_STATIC_HELD_H
#define TOOL_ATTACH_STATIC_HELD_H

#include <stdbool.h>
#include <sys/types.h>

#include "format/hello.h"
#include "tool/base/array.h"

enum static_held_state {
    HELD_STARTS,   // a thread that is about to become the program
    HELD_SPAWNS,   // one that makes a child for it
    HELD_CHILD,    // that child, stopped, before it is known whose it is
    HELD_BECOMES,  // the program is there, and not at its first instruction
    HELD_LEAVES,   // is let go at its next stop
};

struct static_held {
    pid_t pid, tid;
    enum static_held_state state;
    pid_t teller;  // the process that said so
    struct cairn_hello message;
};

struct static_holds {
    ARRAY(struct static_held) items;
    const char *library;    // libcairn-bare.so
    const char *variables;  // those of the run
    // Program `pid`, of which `teller` said that it would not be recorded, will be.
    void (*recorded)(void *context, pid_t pid, pid_t teller, const struct cairn_hello *message);
    void *context;
};

// Takes hold, if that can be, by what a process said of a static program, before it is answered.
void static_holds_hear(struct static_holds *holds, pid_t pid, const struct cairn_hello *message);

// Takes note of what wait4 says. True: it was a stop of one that is held.
bool static_holds_note(struct static_holds *holds, pid_t pid, int status);

// Lets all go.
void static_holds_close(struct static_holds *holds);

#endif
