// SPDX-License-Identifier: Apache-2.0
// malloc's heap and those by name (heaps.h) in one list of stacks, for formats that say of each
// which heap it is of (struct stack.heap). What an allocator by name took from malloc is told apart
// from the rest of malloc's heap: who adds up all heaps leaves it out, or counts it twice.
#ifndef TOOL_MODEL_ALL_HEAPS_H
#define TOOL_MODEL_ALL_HEAPS_H

#include "tool/base/error.h"
#include "tool/model/profile.h"

// Of struct stack.heap. From HEAP_NAMES on: a scope, of kind CAIRN_SCOPE_POOL, and this.
enum { HEAP_OF_PROFILE, HEAP_MALLOC, HEAP_BACKING, HEAP_NAMES };

// The name of the heap that a stack is of; NULL: malloc's, in a profile that has no other.
const char *profile_heap_of(const struct profile *profile, const struct stack *stack);

// The heap of a stack of malloc's, where there are others.
uint16_t all_heaps_of_malloc(const struct profile *profile, uint32_t node);

// Appends the stacks of all heaps by name, each at its own peak. Without any, the profile stays as
// it is. Its stacks are as they were built: no filter came before. False without memory.
bool profile_show_all_heaps(struct profile *profile, struct error *error);

#endif
