// SPDX-License-Identifier: Apache-2.0
// Where the threads of a stopped process are, by unwinding each of them from outside.
//
// whereabouts.h judges what was unwound.
#ifndef TOOL_ATTACH_SAFE_H
#define TOOL_ATTACH_SAFE_H

#include "tool/attach/remote.h"
#include "tool/attach/threads.h"
#include "tool/attach/whereabouts.h"

struct entries;
struct watchtower;  // the process' modules with their unwind information

// Reads what can be read beforehand. `allocator`: an address in the module that malloc is from;
// `own_path`: the file of cairn's library, whose copy has no path in the process.
struct watchtower *watchtower_open(const struct remote *remote, uint64_t allocator,
                                   const char *own_path, struct error *error);
void watchtower_close(struct watchtower *tower);

// The modules are not those of the last look any more.
bool watchtower_refresh(struct watchtower *tower, struct error *error);

// The allocator is in the executable: these functions. They stay the caller's.
void watchtower_tell_entries(struct watchtower *tower, const struct entries *entries);

// `thread` is stopped. `code_start`, `code_end`: what is_in_range is about.
struct whereabouts watchtower_look(struct watchtower *tower, const struct stopped_thread *thread,
                                   uint64_t code_start, uint64_t code_end);

// Unwinds a thread that was stopped and runs again, for nothing but what is read from files and
// kept for the looks that count: the process does not stand for that.
void watchtower_rehearse(struct watchtower *tower, const struct stopped_thread *thread);

// Whether a frame of the thread, also one that a signal interrupted, is at an address of which
// `is_met` holds.
bool watchtower_meets(struct watchtower *tower, const struct stopped_thread *thread,
                      bool (*is_met)(const void *context, uint64_t pc), const void *context);

#endif
