// SPDX-License-Identifier: Apache-2.0
// Thread slots: numbered places for the state of threads, kept in memory that fork wipes.
//
// A thread that ends gives its slot up, tables, cells and last stack included, and the next thread
// that starts takes it over; so a hundred thousand short threads need a handful of slots, and find
// everything prepared. It hears of its end by a pthread key. A later event of it, in a destructor
// of another key, takes a slot again, mostly the same. Nothing depends on the key: the slot of a
// thread whose end was not heard of is taken over once the kernel no longer knows its tid.
//
// Both take a lock without waiting: who does not get it takes a fresh slot, or leaves its slot to
// be found by its tid.
#ifndef RUNTIME_SLOTS_H
#define RUNTIME_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gate.h"

// True while this thread takes a slot or gives it up: an event of a signal handler waits for that.
extern HIDDEN __thread bool slots_is_moving;
#include "runtime/sys/region.h"

// Reserves the slots (once) and finds pthread's key functions. False without memory.
bool slots_init(void);

// Begins with no slot taken: `records` is the recording's table of threads.
void slots_open(struct region records);

// In a child just made by fork(): wipes them, where the kernel has not (qemu-user, Linux before
// 4.14).
void slots_wipe(void);

// True in a forked child: the slots were wiped.
bool slots_is_wiped(void);

// A slot for the calling thread, its gate BUSY for the hook with the frame `here`; NULL when there
// is none (a loss).
struct thread *slots_register(uintptr_t here);

uint32_t slots_count(void);

// Gives back the address space of slots that are far from being used.
void slots_shrink(void);

// The process is not recorded any more: nothing of ours is called when a thread ends.
void slots_close(void);

#endif
