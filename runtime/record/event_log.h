// SPDX-License-Identifier: Apache-2.0
// The event log of a process, for --events and cairn ctl (format/events.h): each thread writes its
// events into a chunk of its own, which the tool takes when it is full. A thread needs no lock and
// no system call for an event, and none of the other threads. Only with a tool: there is nobody
// else who takes chunks.
//
// How far a chunk is written stands in the thread, not in the chunk: there the first word that is 0
// says it, and the first word of an event is written last. So an event is there or not, wherever a
// signal handler jumps out of it or the process is killed. A forked child that finishes an event of
// its parent, which it may have to (gate.h), writes the words that its parent writes as well.
//
// Turns of a log from the start lie beside the slots of the live map, where ages have their births;
// those of a log that began late in a table behind the chunks.
#ifndef RUNTIME_RECORD_EVENT_LOG_H
#define RUNTIME_RECORD_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/events.h"
#include "runtime/live/live.h"
#include "runtime/record/ages.h"
#include "runtime/thread/gate.h"

// The recording begins, also that of a forked child, and its log with it; false: it has no room for
// one.
bool event_log_open(void);

// Gives its address space back to a program that limits its own, where there is no log so far: none
// begins any more.
void event_log_shrink(void);

// The tool wants a log to begin or to end while the process runs (cairn_control): where none was
// from the start the turns lie in a table of their own. The thread is BUSY, between two events.
// True: the settings have changed. Then event_mode_renew follows, and after it event_log_switched;
// up to that no other thread switches the log.
bool event_log_look(void);
void event_log_switched(void);

// In a forked child before it has a recording of its own; true: event_mode_renew follows.
bool event_log_leave_parent(void);

// In a forked child, after that: its blocks are entered as there, all turns begin anew.
void event_log_inherit_begin(void);
void event_log_inherit(uintptr_t address, uint32_t cell, uint64_t size);

// The events, for every case. The thread is BUSY.
void event_log_alloc(struct thread *thread, const void *block, uint32_t cell, uint64_t size);
void event_log_free(struct thread *thread, const void *block, uint32_t cell, uint64_t size);
// A block whose free was not seen.
void event_log_unseen(struct thread *thread, const void *block);
// What realloc does: it takes the block, and it fails (BACK) or frees it (GONE).
void event_log_take(struct thread *thread, const void *block, uint32_t cell, uint64_t size);
void event_log_settle(struct thread *thread, const void *block, enum cairn_event_kind kind);
// The program's own mappings; `turn` is the number of the change.
void event_log_map(struct thread *thread, uint64_t start, uint64_t bytes, uint32_t cell,
                   uint32_t turn);
void event_log_unmap(struct thread *thread, uint64_t start, uint64_t bytes, uint32_t turn);

// What fast paths know of a log that began late: its turns, which granules share. An entry has, as
// the format says, the number of events, above it the last one's slot, and the log's number: one of
// an older log counts as none.
struct event_log_late {
    uint64_t *turns;  // (atomic) NULL: those of a log from the start lie in the live map
    uint64_t mask;
    unsigned shift;         // log2 of a granule's bytes
    uint32_t number;        // (atomic) of the log, late or not: odd while one is written
    const char *is_single;  // libc's word: the process has one thread, so that nobody else can
                            // change an entry meanwhile
};
extern HIDDEN struct event_log_late event_log_late;
enum { EVENT_LOG_SLOT_SHIFT = 32, EVENT_LOG_NUMBER_SHIFT = 48 };

// The log that is written, or was the last: an event that was under way as it ended belongs to it.
ALWAYS_INLINE uint32_t event_log_number(void) {
    return (__atomic_load_n(&event_log_late.number, __ATOMIC_RELAXED) - 1) | 1;
}

ALWAYS_INLINE uint64_t *event_log_shared_place(const void *block) {
    const uintptr_t address = live_untagged((uintptr_t)block);
    return &event_log_late.turns[address >> event_log_late.shift & event_log_late.mask];
}

// An event of this log had this place.
ALWAYS_INLINE bool event_log_is_told(const uint64_t *place) {
    uint64_t turn = __atomic_load_n(place, __ATOMIC_RELAXED);
    return turn >> EVENT_LOG_NUMBER_SHIFT == (uint16_t)event_log_number();
}

ALWAYS_INLINE bool event_log_replace(uint64_t *place, uint64_t *was, uint64_t next) {
    if (!*event_log_late.is_single)
        return __atomic_compare_exchange_n(place, was, next, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED);
    __atomic_store_n(place, next, __ATOMIC_RELAXED);
    return true;
}

// Moves it; the word to add to an event, if `*flags` got TURN.
ALWAYS_INLINE uint32_t event_log_shared_turn(const struct thread *thread, uint64_t *place,
                                             uint64_t *flags) {
    const uint64_t log = (uint64_t)(uint16_t)event_log_number() << EVENT_LOG_NUMBER_SHIFT;
    const uint64_t slot = (uint64_t)thread->slot << EVENT_LOG_SLOT_SHIFT;
    uint64_t was = __atomic_load_n(place, __ATOMIC_RELAXED), known;
    do {
        bool is_of_this_log = (was ^ log) >> EVENT_LOG_NUMBER_SHIFT == 0;
        known = is_of_this_log ? was : 0;
    } while (!event_log_replace(place, &was, log | slot | (uint32_t)(known + 1)));
    if ((uint16_t)(known >> EVENT_LOG_SLOT_SHIFT) != thread->slot) *flags |= CAIRN_EVENT_TURN;
    return (uint32_t)known;
}

// The parts of the fast paths. There is room for an event, and it is as late as the last one.
ALWAYS_INLINE bool event_log_is_ready(const struct thread *thread) {
    const struct thread_log *log = &thread->log;
    return log->next < log->end &&
           __atomic_load_n(ages.clock_ms, __ATOMIC_RELAXED) == log->clock_ms;
}

// The same of a log that began late: the chunk is this log's.
ALWAYS_INLINE bool event_log_is_ready_late(const struct thread *thread) {
    return event_log_is_ready(thread) && thread->log.log_number == event_log_number();
}

// Moves the turn of a block's granule; the word to add to an event, if `*flags` got TURN.
ALWAYS_INLINE uint32_t event_log_turn(const struct thread *thread, struct turn *turn,
                                      uint64_t *flags) {
    struct turn was = *turn;
    if (was.slot != thread->slot) *flags |= CAIRN_EVENT_TURN;
    *turn = (struct turn){was.number + 1, thread->slot};
    return was.number;
}

// An event is complete with its first word, behind which `words` more were written.
ALWAYS_INLINE void event_log_finish(struct thread_log *log, uint64_t first, uint32_t words) {
    uint64_t *next = log->next;
    __atomic_store_n(next, first, __ATOMIC_RELEASE);
    log->next = next + words + 1;
}

ALWAYS_INLINE uint64_t event_log_first(const void *block, uint64_t kind) {
    return (uint64_t)(uintptr_t)block << CAIRN_EVENT_ADDRESS_SHIFT | kind;
}

// A block of less than 4 GiB, as malloc allocates it; `number` is the turn before, if flags say so.
ALWAYS_INLINE void event_log_put_alloc(struct thread *thread, const void *block, uint32_t cell,
                                       uint64_t size, uint64_t flags, uint32_t number) {
    uint64_t *words = thread->log.next;
    words[1] = size << 32 | cell;
    if (unlikely(flags & CAIRN_EVENT_TURN)) {
        words[2] = number;
        event_log_finish(&thread->log, event_log_first(block, flags), 2);
    } else {
        event_log_finish(&thread->log, event_log_first(block, flags), 1);
    }
}

ALWAYS_INLINE void event_log_put_free(struct thread *thread, const void *block, uint64_t flags,
                                      uint32_t number) {
    if (unlikely(flags & CAIRN_EVENT_TURN)) {
        thread->log.next[1] = number;
        event_log_finish(&thread->log, event_log_first(block, flags), 1);
    } else {
        event_log_finish(&thread->log, event_log_first(block, flags), 0);
    }
}

// The turn of a granule that stays with this thread is only counted: what event_log_turn does, with
// flags that the compiler knows in either branch. The other one reads the number as an atomic, so
// that it is not read before the branch, where that takes a register.
ALWAYS_INLINE uint32_t event_log_turn_over(const struct thread *thread, struct turn *turn) {
    uint32_t number = __atomic_load_n(&turn->number, __ATOMIC_RELAXED);
    *turn = (struct turn){number + 1, thread->slot};
    return number;
}

ALWAYS_INLINE void event_log_alloc_fast(struct thread *thread, const void *block, uint32_t cell,
                                        uint64_t size, struct turn *turn) {
    const uint64_t plain = CAIRN_EVENT_ALLOC, turned = plain | CAIRN_EVENT_TURN;
    if (likely(turn->slot == thread->slot)) {
        turn->number++;
        event_log_put_alloc(thread, block, cell, size, plain, 0);
    } else {
        uint32_t number = event_log_turn_over(thread, turn);
        event_log_put_alloc(thread, block, cell, size, turned, number);
    }
}

ALWAYS_INLINE void event_log_free_fast(struct thread *thread, const void *block,
                                       struct turn *turn) {
    const uint64_t plain = CAIRN_EVENT_FREE, turned = plain | CAIRN_EVENT_TURN;
    if (likely(turn->slot == thread->slot)) {
        turn->number++;
        event_log_put_free(thread, block, plain, 0);
    } else {
        uint32_t number = event_log_turn_over(thread, turn);
        event_log_put_free(thread, block, turned, number);
    }
}

ALWAYS_INLINE void event_log_alloc_late(struct thread *thread, const void *block, uint32_t cell,
                                        uint64_t size) {
    uint64_t flags = CAIRN_EVENT_ALLOC;
    uint32_t number = event_log_shared_turn(thread, event_log_shared_place(block), &flags);
    event_log_put_alloc(thread, block, cell, size, flags, number);
}

ALWAYS_INLINE void event_log_free_late(struct thread *thread, const void *block) {
    uint64_t flags = CAIRN_EVENT_FREE;
    uint32_t number = event_log_shared_turn(thread, event_log_shared_place(block), &flags);
    event_log_put_free(thread, block, flags, number);
}

#endif
