// SPDX-License-Identifier: Apache-2.0
// Unwinds the threads of a stopped process from outside, by libdwfl. safe_point.h judges the
// frames.
#ifndef TOOL_ATTACH_REMOTE_UNWIND_H
#define TOOL_ATTACH_REMOTE_UNWIND_H

#include "tool/attach/safe_point.h"
#include "tool/proc/remote.h"
#include "tool/proc/threads.h"

struct entries;
struct remote_unwinder;  // the process' modules with their unwind information

// Reads what can be read beforehand. `allocator`: an address in the module that malloc is from;
// `own_path`: the file of cairn's library, whose copy has no path in the process.
struct remote_unwinder *remote_unwind_open(const struct remote *remote, uint64_t allocator,
                                           const char *own_path, struct error *error);
void remote_unwind_close(struct remote_unwinder *unwinder);

// Reads the modules again, after they have changed.
bool remote_unwind_refresh(struct remote_unwinder *unwinder, struct error *error);

// Sets the functions of an allocator that is in the executable. They stay the caller's.
void remote_unwind_set_entries(struct remote_unwinder *unwinder, const struct entries *entries);

// Sets where libc lies, if that has no unwind information (blind_stack.h).
void remote_unwind_set_blind(struct remote_unwinder *unwinder, uint64_t start, uint64_t end);

// `thread` is stopped. `code_start`, `code_end`: what is_in_range is about.
struct safe_point remote_unwind_thread(struct remote_unwinder *unwinder,
                                       const struct stopped_thread *thread, uint64_t code_start,
                                       uint64_t code_end);

// Unwinds a thread that was stopped and runs again, only to read from files now what later
// unwinding needs: the process is not stopped for that.
void remote_unwind_rehearse(struct remote_unwinder *unwinder, const struct stopped_thread *thread);

// Whether a frame of the thread, also one that a signal interrupted, is at an address of which
// `is_met` holds.
bool remote_unwind_meets(struct remote_unwinder *unwinder, const struct stopped_thread *thread,
                         bool (*is_met)(const void *context, uint64_t pc), const void *context);

#endif
