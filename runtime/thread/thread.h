// SPDX-License-Identifier: Apache-2.0
// The state of a thread.
//
// Slots: a thread takes a numbered slot with its tables and cells. The slot of a thread that no
// longer exists is taken over by a later one. Thread-local storage is a pointer to the slot.
#ifndef RUNTIME_THREAD_THREAD_H
#define RUNTIME_THREAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "format/wrap.h"
#include "runtime/live/live.h"
#include "runtime/record/timeline.h"
#include "runtime/sample/blocks.h"
#include "runtime/sample/countdown.h"
#include "runtime/stack/intern.h"
#include "runtime/stack/watch.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/region_stack.h"
#include "runtime/unwind/stack_cache.h"
#include "runtime/unwind/walk.h"

// Who holds a thread's gate, written by one instruction (gate_hold).
struct gate_holder {
    _Alignas(16) uintptr_t frame;  // 0: the gate is open; else the frame address of the hook whose
                                   // event it is, and marks
    uintptr_t return_address;      // in that frame: changed once the frame is gone
};

// Marks beside the frame's address: in a real allocation function that may call another hooked one;
// that function is an allocator's own operator new, which may call the program, a new handler.
#define GATE_INSIDE ((uintptr_t)1)
#define GATE_OPERATOR ((uintptr_t)2)
#define GATE_MARKS (GATE_INSIDE | GATE_OPERATOR)

// What a forked child finds in place of the stamp: no thread has it.
enum { GATE_NO_STAMP = 0 };

// A call that a real allocation function makes to a hooked one: the hook's return address, and how
// far its frame lies from the one that waits for the real function.
struct gate_inner_call {
    uintptr_t pc, distance_bytes;
};
enum { GATE_INNER_CALLS = 8 };

// What the kernel wipes of a thread in a forked child, on a cache line of its own. Where
// allocations are sampled, `left_bytes` says how many more bytes pass without a look at anything
// else; it is not above 0 unless the thread is registered, in this process and not INSIDE (see
// sample/countdown.h).
struct gate_line {
    _Alignas(64) int64_t left_bytes;
    bool is_registered;  // the thread has its slot in this process
};

// Where a thread writes its events (event_log.h); all 0 while it has no chunk.
struct cairn_events_chunk;
struct thread_log {
    uint64_t *next, *end;  // behind `end` there is no room for another event
    uint32_t clock_ms;     // the last event's
    uint32_t number;       // of its next chunk
    uint32_t log_number;   // of the log that its chunk belongs to
    struct cairn_events_chunk *chunk;
    uint64_t flags;  // CAIRN_EVENT_… of the next allocation, with what they add
    uint64_t alignment;
    const void *taken;
    uint32_t pause;     // events until it looks for a chunk again
    bool is_untracked;  // the block of this event is not in the live map
};

// The last block that a thread allocated. If it frees that before it allocates again, the block is
// a temporary one, and its place in the live map need not be looked for: the word that was put
// there holds a cell of this thread, so nobody else can have put it there, and whoever else freed
// the block has taken it away.
//
// The next block is mostly the one that was just freed, at the same place. Then its place and word
// are those that are remembered, if its size and header are the same, and the stack.
struct thread_last {
    const void *block;  // NULL: none, or it was freed; but it may be freed without that
    uint32_t *slot;     // never NULL; if its free would do more than count, a place that never
                        // holds the word
    uint64_t size;
    uint32_t word;  // never 0
};

// What is known of the cell of the last stack, if that has one (seen.value).
struct thread_cell {
    struct cairn_cell *cell;
    // A block of the cell's usual size, and the header that one of them had: then this one has the
    // same slack, and `word` is its word in the live map but for the half. 0: none was met.
    uint64_t header, size;
    uint32_t slack_bytes, word;
    struct cairn_sizes *sizes;  // where other sizes were counted last, of this cell or another one
};

// What every event reads lies in the first four cache lines, and no line belongs to two threads.
struct thread {
    _Alignas(64) struct gate_holder holder;
    uint32_t stamp;  // of the gate, when this thread last looked (gate.h)
    uint32_t slot;
    struct cairn_thread *record;
    // When net_bytes passes one of these, the event goes a slow way; see event.c.
    int64_t high_bytes, low_bytes;  // publish
    int64_t peak_bytes;      // a free from above this leaves a new peak, the process' or a region's
    struct gate_line *line;  // never NULL
    struct thread_last last;
    struct watch watch;     // one of its blocks: does it live long?
    struct walk_seen seen;  // the last stack, with its cell
    struct thread_cell at;
    struct live_near near;  // where it allocated last
    struct walk_trace trace;
    int64_t total_peak_bytes;  // the process', if net_bytes is above this; else a region's
                               // (region_stack.h)
    int64_t published_bytes, published_blocks;
    uint64_t published_allocated, published_allocations;
    struct point_seen point;
    uint32_t call_count;  // its allocations, where blocks have ages
    struct stack_cache recall;
    struct walk_trace *verify;         // see verify.h
    struct python_thread *python;      // with EVENT_PYTHON; NULL: not yet
    struct java_thread *java;          // the same
    struct go_thread *go;              // the same
    struct js_thread *js;              // the same
    struct php_thread *php;            // the same
    struct ruby_thread *ruby;          // the same
    struct async_thread *async;        // NULL: it ran no coroutine yet
    struct walk_trace *outside_trace;  // of native code that called one of these
    struct stack_thread stack;
    struct region_stack nest;
    int32_t tid;
    int32_t forker_pid;   // set while a clone that may fork is expected (gate_expect_fork), or 0
    uint32_t is_exiting;  // its exit was seen; the slot is free once the tid is gone
    uint32_t next_free;   // of a slot that was given up: the next such slot + 1, or 0
    struct gate_inner_call inner_calls[GATE_INNER_CALLS];  // found to be such, by a hash of pc
    uint32_t bucket_cells[2];  // of blocks too small, too large for a stack; 0: none yet
    struct countdown countdown;
    struct sampled taken;  // by a realloc that is under way
    struct thread_log log;
    bool has_taken, has_chance;
    uintptr_t wrapped[CAIRN_WRAP_HEAPS];  // by heap: its outermost call (inject/wrap.c); 0: none
};

// The last block has no place that is remembered, if there is one. What lies there is neither empty
// nor the word of a block, and never changes.
enum { THREAD_NO_WORD = 1 };
extern HIDDEN uint32_t thread_no_slot;
extern HIDDEN struct cairn_sizes thread_no_sizes;  // the same: of no cell
ALWAYS_INLINE void thread_keep_last(struct thread *thread, const void *block) {
    thread->last.slot = &thread_no_slot;
    thread->last.block = block;
}

// An event may be half done: its stack and its block mean nothing any more.
void thread_forget(struct thread *thread);

// The calling thread; one with a gate that is never opened as long as it has no slot.
extern HIDDEN __thread struct thread *gate_self;

// The thread that gate_self points to before a slot is taken.
struct thread *gate_nobody(void);

#endif
