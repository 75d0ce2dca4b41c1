// SPDX-License-Identifier: Apache-2.0
// The library's thread-local variables in the threads of a stopped process.
//
// glibc's dlopen gives them their values in every thread that is on its list. A thread that is
// being made at that moment has its memory already and is not yet on the list: what it finds there
// is whatever that memory held. The same is true of a thread's memory that the program made itself.
// No thread may enter a hook so, since the hooks read these variables without a look at them.
#ifndef TOOL_ATTACH_LOCALS_H
#define TOOL_ATTACH_LOCALS_H

#include "tool/attach/session.h"

// Gives them in every thread the values of a new thread: some threads may have those of an attach
// of before.
void locals_reset(const struct attach *attach);

// The same only in threads where they are neither those of a new thread nor those of one that the
// library knows. Nothing else than that may be there, also while threads record.
void locals_repair(const struct attach *attach);

#endif
