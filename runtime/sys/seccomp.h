// SPDX-License-Identifier: Apache-2.0
// Seccomp filters that were set before this image began, by whoever executed it. The work of a
// filter is not to be known from inside, and a system call that it forbids may be the end: even
// asking for it may be. So it is read from /proc, by the calls that the dynamic linker has just
// made for each library: openat, read and close.
//
// A filter that the program sets through libc can be read before: one that only lets calls fail, as
// launchers of sandboxes have it, changes nothing for us (tests/promises/faults.py), and is handed
// on by its number in CAIRN_FILTERS.
//
// A filter that the tool lives under too, or process 1 of a container, is taken for part of the
// surroundings: container engines have one for all that they run.
#ifndef RUNTIME_SYS_SECCOMP_H
#define RUNTIME_SYS_SECCOMP_H

#include <stdbool.h>

// Before the program sets a filter (struct sock_fprog): true if whatever a native system call meets
// there is that it is made, or fails.
bool seccomp_note(const void *program);

// True if the calling thread lives under a filter that is neither of its surroundings nor one that
// was found harmless. Makes no other system call than those, but where there is no /proc. Otherwise
// `more` is how many filters those that it starts have to be told of; 0: none beyond CAIRN_FILTERS.
bool seccomp_is_foreign(long *more);

#endif
