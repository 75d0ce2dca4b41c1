// SPDX-License-Identifier: Apache-2.0
// Starts a program so that it records itself.
#ifndef TOOL_WATCH_LAUNCH_H
#define TOOL_WATCH_LAUNCH_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tool/base/error.h"

// What goes into the program's environment. Texts are NULL where they do not apply.
struct launch {
    char library[PATH_MAX];   // libcairn.so
    const char *socket_name;  // CAIRN_SOCKET: a tool holds the recording
    const char *output;       // CAIRN_OUTPUT: the process writes its own file
};

// Finds libcairn.so (`has_operators`: the form that also wraps C++'s operator new) beside cairn or
// in ../lib/cairn.
bool launch_find_library(struct launch *launch, bool has_operators, struct error *error);

// Puts the variables into this process' environment, the library first in LD_PRELOAD.
bool launch_set_environment(const struct launch *launch, struct error *error);

// Starts the program in a child whose signal mask is `mask`. False, with `status` 126 or 127, when
// it could not be executed.
bool launch_start(const struct launch *launch, const char *path, char **words, const sigset_t *mask,
                  pid_t *child, int *status, struct error *error);

#endif
