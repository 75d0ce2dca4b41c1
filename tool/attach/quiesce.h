// SPDX-License-Identifier: Apache-2.0
// Waits until no thread is in code that is to be changed or left: cairn's, or an allocator's in the
// executable whose first instructions are moved.
#ifndef TOOL_ATTACH_QUIESCE_H
#define TOOL_ATTACH_QUIESCE_H

#include "tool/attach/session.h"

// At a stop: no thread is, or will return, to where jumps are written or put back.
bool quiesce_is_way_free(struct attach *attach);

// At a stop: a thread is in the library's code, or in the way. attach->inside has those that are.
bool quiesce_is_any_inside(struct attach *attach);

// Nothing leads into the library any more: stops each thread of attach->inside alone, again and
// again until it was seen outside, or `end_ns` has passed. The others go on meanwhile, so that
// waiting for one does not cost the whole process a pause.
void quiesce_await(struct attach *attach, uint64_t end_ns);

// The same for attach->makers, until each was seen outside of pthread_create. False: some were not
// before `end_ns`, and are still in the list.
bool quiesce_await_makers(struct attach *attach, uint64_t end_ns);

// Fills a list with all threads of a process.
void quiesce_list_threads(pid_t pid, thread_list *list);

// Reads what unwinding some of the threads needs from files, while the process runs.
void quiesce_rehearse(struct attach *attach);

#endif
