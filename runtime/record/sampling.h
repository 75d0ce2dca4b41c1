// SPDX-License-Identifier: Apache-2.0
// Events where allocations are sampled: what follows when the hooks' one comparison has not settled
// an event. Composes the rooms, as event.c does for exact recording.
//
//     alloc: count -> pay the countdown -> (sampled) walk, intern, enter the block, book its weight
//     free:  (the filter knows the address) take the block out, book what it had
//
// The calls and bytes of a thread are counted exactly, by single instructions on its record: a
// signal handler may allocate between any two of them.
#ifndef RUNTIME_RECORD_SAMPLING_H
#define RUNTIME_RECORD_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/sample.h"
#include "runtime/live/live.h"
#include "runtime/sample/blocks.h"
#include "runtime/sample/countdown.h"
#include "runtime/sink/sink.h"
#include "runtime/thread/gate.h"

struct sampling {
    struct cairn_sampling *record;  // in the recording; NULL: it has no room for samples
    uint64_t seed;
    uint64_t wanted_bytes;  // the rate that is adapted from: as last asked for
    uint64_t thread_count;  // (atomic) streams of random numbers begun
    uint64_t fork_count;    // (atomic) children made by fork()
    int32_t thinned_by;     // (atomic) tid of who thins the table; 0: nobody
};

extern HIDDEN struct sampling sampling;

// Finds room in a new recording, whether sampling is on from the start or not. False without
// memory, or if sampling was wanted and has no room.
bool sampling_open(bool is_on);

// In a forked child, after sampling_open: other random numbers, and the sampled blocks that it
// inherited, counted for `record`.
void sampling_inherit(struct cairn_thread *record);

// Blocks that were there before the recording, found one after the other: samples with the chance
// that they would have had when they were allocated, counted for `record`. `bytes`, of all of them:
// the rate rises until their samples take no more than half of the room.
struct sampling_found {
    struct cairn_thread *record;
    struct countdown countdown;
    int64_t left_bytes;
    uint64_t blocks, bytes;  // all that were found, sampled or not
};
void sampling_find_begin(struct sampling_found *found, struct cairn_thread *record, uint64_t bytes);
void sampling_find(struct sampling_found *found, const void *block, uint64_t size, uint32_t cell);
// Says in the recording how many there were.
void sampling_find_end(const struct sampling_found *found);

// Another child begins, whose random numbers are to be its own.
ALWAYS_INLINE void sampling_note_fork(void) {
    __atomic_fetch_add(&sampling.fork_count, 1, __ATOMIC_RELAXED);
}

// Allocations are sampled from now on. False if there is no room for it.
bool sampling_begin(void);

// The program wants another rate. False if nothing is being sampled.
bool sampling_set_rate(uint64_t rate_bytes);

// Gives back address space.
void sampling_shrink(uint64_t headroom_bytes);

// The events, with the thread BUSY. What became of an allocation: the cell of the sample,
// SAMPLING_PASSED or SAMPLING_NOT_COUNTED. What was known of a freed block; id 0: not sampled.
enum { SAMPLING_PASSED = 0, SAMPLING_NOT_COUNTED = UINT32_MAX };
uint32_t sampling_alloc(struct thread *thread, void *block, size_t size, uintptr_t *frame);
struct live_block sampling_free(struct thread *thread, const void *block, uintptr_t *frame);
// realloc: its block, out of the table; id 0: not sampled. Booked as freed, or put back.
struct live_block sampling_take(struct thread *thread, const void *block, uintptr_t *frame);
void sampling_book_taken(struct thread *thread);
void sampling_put_back(struct thread *thread, const void *block, uintptr_t *frame);

// Adds to a counter by one instruction.
ALWAYS_INLINE void sampling_add(uint64_t *counter, uint64_t change) {
#if defined(__x86_64__)
    __asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(change) : "cc");
#else
    __atomic_fetch_add(counter, change, __ATOMIC_RELAXED);
#endif
}

ALWAYS_INLINE void sampling_subtract(int64_t *left, int64_t charge) {
#if defined(__x86_64__)
    __asm__ volatile("subq %1, %0" : "+m"(*left) : "er"(charge) : "cc");
#else
    __atomic_fetch_sub(left, charge, __ATOMIC_RELAXED);
#endif
}

ALWAYS_INLINE void sampling_count(struct cairn_thread *record, size_t size) {
    sampling_add(&record->allocations, 1);
    sampling_add(&record->allocated_bytes, size);
}

// An allocation that is not sampled, and nothing else about it is unusual: counted, and true.
ALWAYS_INLINE bool sampling_passes(const void *block, size_t size) {
    struct thread *thread = gate_self;
    struct gate_line *line = thread->line;
    int64_t charge = (int64_t)(size + !size);
    if (unlikely(charge >= line->left_bytes)) return false;
    if (unlikely(!block) || unlikely(sink.header->control.is_off)) return false;
    sampling_subtract(&line->left_bytes, charge);
    sampling_count(thread->record, size);
    return true;
}

// While a real function works that may call another hooked one (INSIDE) the countdown is negative:
// by one instruction, so that a child forked meanwhile, where it is 0, does not get it open.
ALWAYS_INLINE void sampling_negate(int64_t *left) {
#if defined(__x86_64__)
    __asm__ volatile("negq %0" : "+m"(*left) : : "cc");
#else
    int64_t old = __atomic_load_n(left, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(left, &old, -old, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}
ALWAYS_INLINE void sampling_close(void) {
    if (gate_line()->left_bytes > 0) sampling_negate(&gate_line()->left_bytes);
}
ALWAYS_INLINE void sampling_reopen(void) {
    if (gate_line()->left_bytes < 0) sampling_negate(&gate_line()->left_bytes);
}

#endif
