// SPDX-License-Identifier: Apache-2.0
// Records a process that runs already: loads the library into it, gives it its settings and
// redirects the program's calls to it; later it undoes all of that (docs/howto/attach.md).
//
//     attach_open   checks, without stopping anything, whether the process can be attached to
//     attach_start  waits for a safe moment; from its end on the process is recorded
//     attach_follow redirects the calls of modules that were loaded since
//     attach_stop   leaves the process as before, but for the library, which stays idle in its
//     memory
#ifndef TOOL_ATTACH_ATTACH_H
#define TOOL_ATTACH_ATTACH_H

#include "tool/attach/session.h"

// What the process has of the one that it is a fork of, if that was recorded by this tool and the
// tool follows its forks: the library, and calls that lead to it.
enum attach_inherited {
    ATTACH_NOTHING,
    ATTACH_WAITS,    // begins a recording of its own with its first call
    ATTACH_RECORDS,  // has begun it
    ATTACH_IDLES,    // has none, is about to ask for it, or was made in the middle of an attach
};

bool attach_open(struct attach *attach, pid_t pid, const char *library_path, bool is_anyway,
                 struct error *error);
bool attach_start(struct attach *attach, const struct attach_request *request, struct error *error);
// `has_changed`: there were such modules.
bool attach_follow(struct attach *attach, bool *has_changed, struct error *error);
bool attach_stop(struct attach *attach, struct error *error);
void attach_close(struct attach *attach);

// After attach_open. All but ATTACH_NOTHING is to be left by attach_stop, or attached to.
enum attach_inherited attach_look_inherited(struct attach *attach);
// One that records is followed like its parent: libraries that it has loaded meanwhile, too.
void attach_inherit(struct attach *attach);

// The library may be mapped: a look at the process' mappings only.
bool attach_may_have_library(pid_t pid);

// The library is still there: false if the process has replaced its program, or has ended.
bool attach_is_there(const struct attach *attach);

#endif
