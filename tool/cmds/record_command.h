// SPDX-License-Identifier: Apache-2.0
// A command recorded on behalf of another one: `cairn run -q` is started beside this process.
#ifndef TOOL_CMDS_RECORD_COMMAND_H
#define TOOL_CMDS_RECORD_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"

struct record_command {
    char **words;
    int count;
    const char *output;     // where the recording goes; NULL: into a directory of its own
    bool has_guard;         // bands around blocks
    bool has_unreachable;   // what nothing leads to at the end
    bool has_python;        // objects and code of Python
    bool is_silent;         // its standard output goes nowhere
    const char *directory;  // where it runs; NULL: here
    uint64_t limit_ns;      // it is killed then, with what it started; 0: never
};

struct recorded {
    char directory[PATH_MAX];  // made for the recording; "": none
    char path[PATH_MAX];       // of the recording, or the directory of a run
    int status;                // of the command; 128+N: signal N ended it
    uint64_t over_limit_ns;    // it was killed after so long; 0: it ended
};

// False with an error if nothing was recorded, whatever the command's status was.
bool record_command(const struct record_command *command, struct recorded *recorded,
                    struct error *error);
// Says how a command ended that failed.
void recorded_text(const struct recorded *recorded, char *out, size_t size);
// Removes the directory that was made, with what is in it.
void record_command_remove(struct recorded *recorded);

// Runs words[0], found in PATH, and waits; its status, 127 if it cannot be started.
int run_and_wait(char *const words[]);

#endif
