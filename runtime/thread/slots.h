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
#ifndef RUNTIME_THREAD_SLOTS_H
#define RUNTIME_THREAD_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread/thread.h"

// True while this thread takes a slot or gives it up: an event of a signal handler waits for that.
extern HIDDEN __thread bool slots_is_moving;
#include "runtime/sys/region.h"

// Reserves the slots (once) and finds pthread's key functions. False without memory.
bool slots_init(void);

// Covers slots that are not used yet, while there is what covers (runtime/sys/veil.h).
void slots_cover(void);

// Begins with no slot taken: `records` is the recording's table of threads.
void slots_open(struct region records);

// In a child just made by fork(): wipes them, where the kernel has not (qemu-user, Linux before
// 4.14).
void slots_wipe(void);

// True in a forked child: the slots were wiped, or are now, if the kernel does not do that and a
// fork was expected (gate_expect_fork).
bool slots_is_wiped(void);

// A slot for the calling thread, its gate BUSY for the hook with the frame `here`; NULL when there
// is none (a loss).
struct thread *slots_register(uintptr_t here);

// Threads that have a slot, ended ones included until their slot is taken over. At least 1.
uint32_t slots_count(void);

// Bytes of threads' first memory that count as taken (sys_own_bytes) but were never touched.
uint64_t slots_untouched_bytes(void);

// Gives back the address space of slots beyond those of `more_threads` more threads, and of the
// list of threads as region_shrink.
void slots_shrink(uint64_t headroom_bytes, uint32_t more_threads);

// Gives back all memory of threads, in a process of one thread that is not recorded any more.
void slots_release(void);

// The process is not recorded any more: nothing of ours is called when a thread ends.
void slots_close(void);

#endif
