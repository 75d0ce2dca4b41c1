// SPDX-License-Identifier: Apache-2.0
// Finds where a thread's stack ends in a mapping that the kernel joined with other memory: musl's
// threads have 128 KiB, and what malloc mapped before lies right above. The libc keeps what it
// knows of a thread at the upper end of its stack: a word that is its own address, and the thread's
// number. Only resident pages are read.
#ifndef TOOL_WATCH_STACK_END_H
#define TOOL_WATCH_STACK_END_H

#include <stdint.h>
#include <sys/types.h>

#include "tool/proc/pagemap.h"

// The libc's own data of a thread, from its pointer on, and what lies behind: at most so much.
enum { STACK_THREAD_BYTES = 2304 };

// Returns the end of the stack that begins at `start`, at most `end`; 0: it is not known.
uint64_t stack_end_find(pid_t pid, const struct pagemap *pagemap, uint64_t start, uint64_t end);

#endif
