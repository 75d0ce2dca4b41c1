// SPDX-License-Identifier: Apache-2.0
// Attaching to a static program that runs: what of attach.c differs where there is no dynamic
// linker. The tool is the loader: it puts libcairn-bare.so into the process from a file in memory,
// and takes it out again when it leaves. The library needs nothing of libc, so that it is loaded
// and started wherever a thread stands.
#ifndef TOOL_ATTACH_STATIC_ATTACH_H
#define TOOL_ATTACH_STATIC_ATTACH_H

#include "tool/attach/session.h"

// Everything that can be looked at before anything is stopped. False, with a clause: it cannot be
// attached to.
bool static_attach_open(struct attach *attach, struct error *error);
void static_attach_close(struct attach *attach);

// False, with a clause: some of what is asked for needs a dynamic linker.
bool static_attach_allows(const struct attach_request *request, struct error *error);

// Stops the process; returns a thread that can load the library, wherever it stands.
struct stopped_thread *static_attach_stop(struct attach *attach, struct error *error);

// Loads the library by a thread that makes calls, and makes the ways to it: all threads are
// stopped. Nothing leads there yet.
bool static_attach_load(struct attach *attach, struct caller *caller, struct error *error);

// Takes everything out of the process again: it is stopped, and no thread is in it.
void static_attach_unload(struct attach *attach, struct caller *caller);

#endif
