// SPDX-License-Identifier: Apache-2.0
// From a walked stack to the cell of (this thread, this stack).
//
// There is no tree of stacks in the process. A stack is found by its hash in the thread's own
// table; a new one appends a record (format.h) that says how it differs from the stack this thread
// interned before. No lock, and nothing that other threads write is touched.
//
// One owner thread. An interrupted call may lose a cell id or a table entry, never safety.
#ifndef RUNTIME_STACK_INTERN_H
#define RUNTIME_STACK_INTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/stack/hash.h"
#include "runtime/stack/module.h"
#include "runtime/stack/table.h"
#include "runtime/stack/values.h"
#include "runtime/sys/arena.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

// A cell of another thread and this thread's own one for it; id 0: none.
struct foreign_cell {
    uint32_t id, own;
};
enum { FOREIGN_CACHE = 256 };

// Innermost frames of the last stack whose addresses are remembered.
enum { STACK_INNER = CAIRN_SHORT_TAIL_MOST };

struct stack_thread {
    struct arena arena;
    struct table table;
    struct stack_hash *parts;                    // of the last stack up to each frame
    uint32_t last_count;                         // frames of the last stack
    uint32_t last_cell;                          // its cell; 0: none, or it was lost
    uintptr_t inner[STACK_INNER];                // its inner frames, the innermost first
    uint32_t last_generation;                    // of the modules, when it was hashed
    uint32_t next_cell, end_cell;                // what is left of its blocks of cells
    uint32_t *next_word, *end_word;              // what is left of the chunk of records
    struct foreign_cell foreign[FOREIGN_CACHE];  // by the low bits of id
    struct module_near near;                     // of the last record
    struct value_log values;
    uint32_t generation;  // of its new cells: marks that had passed
    uint16_t slot;
};

struct stacks {
    struct region records;
    uint32_t freed_count;    // (atomic) cells that stack_freed has made, over all threads
    struct stack_hash seed;  // random, so that nobody can construct two equal hashes
};

extern HIDDEN struct stacks stacks;

// False without memory. thread->arena may have some to begin with; `parts` has one for each frame
// of the deepest stack. Another list may take its place before the next stack is interned with
// `keep` 0.
bool stack_thread_init(struct stack_thread *thread, uint16_t slot, struct stack_hash *parts);

// The cell for a stack of `count` frames, outermost first, of which the outer `keep` have the same
// addresses as the stack interned before. LOST: there is no room for a new one, and the cell is
// CAIRN_CELL_OTHER.
enum stack_outcome { STACK_KNOWN = 0, STACK_NEW, STACK_LOST };
uint32_t stack_intern(struct stack_thread *thread, const struct frame *frames, uint32_t count,
                      uint32_t keep, enum stack_outcome *outcome);

// The cell of a stack that was interned before, hashed anew without regard to the last one; 0:
// none.
uint32_t stack_find(const struct stack_thread *thread, const struct frame *frames, uint32_t count);

// This thread's cell for frees of blocks that belong to another thread's cell.
uint32_t stack_foreign_slow(struct stack_thread *thread, uint32_t id);

// The same without a call; 0: stack_foreign has to look.
ALWAYS_INLINE uint32_t stack_foreign_known(const struct stack_thread *thread, uint32_t id) {
    const struct foreign_cell *known = &thread->foreign[id % FOREIGN_CACHE];
    return likely(known->id == id) ? known->own : 0;
}

ALWAYS_INLINE uint32_t stack_foreign(struct stack_thread *thread, uint32_t id) {
    const struct foreign_cell *known = &thread->foreign[id % FOREIGN_CACHE];
    return likely(known->id == id) ? known->own : stack_foreign_slow(thread, id);
}

// This thread's cell for frees, by the stack of cell `freeing`, of blocks that cell `id` counts; 0:
// no room, or so many of them that the stacks of allocations would suffer.
enum { STACK_FREED_MOST = 1 << 18 };
uint32_t stack_freed(struct stack_thread *thread, uint32_t id, uint32_t freeing);

// A mark has passed that the thread has not seen: stack_thread_recover takes note.
bool stack_has_new_generation(const struct stack_thread *thread);

// Forgets the last stack: it may be half written. New cells are of the present generation.
void stack_thread_recover(struct stack_thread *thread);

#endif
