// SPDX-License-Identifier: Apache-2.0
// Mappings that the program makes itself, by the stacks that make them (--mmap). They are no blocks
// of the heap: nothing of them is in its totals, cells or peak.
//
// A change is noted after the kernel made it, and by then another thread may already have been
// given the same addresses. So each range has the number of the change that made it, and a removal
// takes nothing that is younger than the moment at which its call began (mapped_stamp).
//
// All of it is one ledger with a lock (runtime/sys/lock.h). Who cannot have it, because its own
// thread was interrupted in it or the holder is stuck, counts a change as lost; the ledger rights
// itself where the addresses are mapped again. mapped again.
#ifndef RUNTIME_RECORD_MAPPED_H
#define RUNTIME_RECORD_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

// Mappings are recorded; set once, before the hooks can meet it.
extern HIDDEN bool mapped_is_on;

// A new recording begins, with no mapping known. False without memory.
bool mapped_begin(void);

// The recording of a forked child: its mappers are those of its parent, copied to mapped_mappers();
// what the parent had mapped, the child has mapped.
struct region *mapped_mappers(void);
void mapped_inherit(void);

// Before a call that takes addresses away.
uint32_t mapped_stamp(void);

// mmap returned `result`, with these arguments.
struct mapped_call {
    size_t length;
    int protection, flags, file;
};
void mapped_note_map(const void *result, const struct mapped_call *call, uintptr_t *frame);

// munmap of this was successful.
void mapped_note_unmap(const void *address, size_t length, uint32_t stamp, uintptr_t *frame);

// mremap was successful.
struct mapped_move {
    const void *old;
    size_t old_length;
    const void *result;
    size_t length;
    int flags;
    uint32_t stamp;
};
void mapped_note_move(const struct mapped_move *move, uintptr_t *frame);

#endif
