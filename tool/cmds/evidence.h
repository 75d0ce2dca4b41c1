// SPDX-License-Identifier: Apache-2.0
// What is kept of a process that may be killed for want of memory: its memory and heap as text, and
// who keeps its blocks as a recording. It is taken from outside: what the process has is copied
// while it stands for a moment, and worked out from the copy, also after its end.
//
//     NAME.txt    memory by kind, the heap, owners, types; written part by part
//     NAME.cairn  owners, for every view: cairn report, cairn open
//     NAME.go.cairn  the profile that a program of Go keeps of its own heap
//
// All of it is done by a child of cairn's, so that whatever goes wrong in it ends nothing else, and
// its memory goes with it.
#ifndef TOOL_CMDS_EVIDENCE_H
#define TOOL_CMDS_EVIDENCE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"

struct evidence_wish {
    pid_t pid;
    char base[PATH_MAX];    // path of the files without their ending
    char why[256];          // a line
    uint64_t bytes_most;    // to copy while the process stands
    unsigned seconds_most;  // for all of it
};

enum evidence_stage {
    EVIDENCE_STARTED,
    EVIDENCE_COPIED,   // the process goes on, and may end
    EVIDENCE_REFUSED,  // it could not be copied: the text says why
    EVIDENCE_DONE,
};

struct evidence {
    pid_t child;  // 0: none is being taken
    int progress;
    enum evidence_stage stage;
};

// Begins.
bool evidence_start(const struct evidence_wish *wish, struct evidence *evidence,
                    struct error *error);
// Takes note of how far it is; true once it is over.
bool evidence_poll(struct evidence *evidence);
// Ends it.
void evidence_stop(struct evidence *evidence);

#endif
