// SPDX-License-Identifier: Apache-2.0
// Thread slots: numbered places for the state of threads, kept in memory that fork wipes.
//
// A thread that ends keeps its slot until a later thread takes it over, tables and cells included,
// once the kernel no longer knows its tid; so late frees in destructors are still recorded, and a
// hundred thousand short threads need a handful of slots. A pthread key only gives the hint that a
// thread is about to end (its end time and name); nothing depends on it.
//
// Registration takes a lock without waiting: who does not get it takes a fresh slot.
#ifndef RUNTIME_SLOTS_H
#define RUNTIME_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gate.h"
#include "runtime/sys/region.h"

// Reserves the slots (once) and finds pthread's key functions. False without memory.
bool slots_init(void);

// Begins with no slot taken: `records` is the recording's table of threads.
void slots_open(struct region records);

// True in a forked child: the slots were wiped.
bool slots_is_wiped(void);

// A slot for the calling thread, its gate BUSY for the hook with the frame `here`; NULL when there
// is none (a loss).
struct thread *slots_register(uintptr_t here);

uint32_t slots_count(void);

// Gives back the address space of slots that are far from being used.
void slots_shrink(void);

#endif
