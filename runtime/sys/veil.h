// SPDX-License-Identifier: Apache-2.0
// Address space of ours that is held but not used yet, covered by a mapping without access of a
// file with a name. A debugger that dumps all that is mapped (gcore -a) does not take that for
// memory; of an uncovered recording it would fill all pages by reading them. It is uncovered from
// the front on, as it is needed, in steps that double: twice what is used at most, and a first
// step. One thread makes a step, mostly before any needs it.
//
// Nothing is covered without such a file, or if the kernel does not do what uncovering takes.
#ifndef RUNTIME_SYS_VEIL_H
#define RUNTIME_SYS_VEIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// From now until veil_close memory may be covered, by this file. The descriptor is ours from then
// on. -1: by none.
void veil_open(long file);
void veil_close(void);

// Maps that file without access, at the kernel's choice; NULL: not to be had.
void *veil_map(size_t bytes);

// Covers what lies behind the first `open_bytes`. Shared memory is untouched, or to be had from its
// file again; that no page of private memory was used the caller knows. False: nothing is covered.
enum veil_kind { VEIL_SHARED, VEIL_PRIVATE };
bool veil_draw(void *memory, size_t bytes, size_t open_bytes, enum veil_kind kind);

// Uncovers memory up to `end`. Any thread, signal handlers included, but private memory by one
// thread at a time. True if it may be used, so for memory that is not covered at all.
bool veil_lift(const void *end);

// Uncovers all shared memory, before the program forbids calls.
void veil_lift_shared(void);

// Tells how many of `bytes` can be read.
uint64_t veil_readable_bytes(const void *memory, uint64_t bytes);

// The stretch is no longer ours; a part of one is the end of it. False if it is being uncovered at
// this moment: then it stays mapped.
bool veil_leave(uintptr_t start, uintptr_t end);

// In a forked child, which has one thread.
void veil_begin_child(void);

#endif
