// SPDX-License-Identifier: Apache-2.0
// Seccomp filters that were set before this image began, by whoever executed it. What a filter does
// is not to be known from inside, and a system call that it forbids may be the end: even asking for
// it may be. So it is read from /proc, by the calls that the dynamic linker has just made for each
// library: openat, read and close.
//
// A filter that the tool lives under too, or process 1 of a container, is taken for part of the
// surroundings: container engines have one for all that they run.
#ifndef RUNTIME_SYS_SECCOMP_H
#define RUNTIME_SYS_SECCOMP_H

#include <stdbool.h>

// True if the calling thread lives under a filter that is not of its surroundings. Makes no other
// system call than those, but where there is no /proc.
bool seccomp_is_foreign(void);

#endif
