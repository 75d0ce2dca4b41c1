// SPDX-License-Identifier: Apache-2.0
// Contexts: sets of labels, key=value, as one number that any thread may enter
// (include/cairn/cairn.h).
//
// A set is a chain of scopes, one a label, by key: the same set has the same number, however it was
// put together. A thread that enters it is then in a chain of scopes within those that it is in,
// regions included. What is remembered of stacks is as for regions: nothing of it is looked at
// where no scope changes.
#ifndef RUNTIME_API_CONTEXT_H
#define RUNTIME_API_CONTEXT_H

#include <stdint.h>

#include "runtime/thread/thread.h"

// The set with a label more, or with another value for its key. It stays as it is if the label
// cannot be one.
uint32_t context_with(uint32_t context, const char *key, const char *value);

// The labels that the thread is in, as a set.
uint32_t context_of_thread(const struct thread *thread);

// Begins it as a region of the thread, which region_stack_end ends.
void context_enter(struct thread *thread, uint32_t context);

#endif
