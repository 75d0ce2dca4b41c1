// SPDX-License-Identifier: Apache-2.0
// Walks a thread's call stack by .eh_frame, remembering the last one.
//
// Most stacks share all but a few frames with the one before. A walk goes outwards from the top
// until it meets a frame of the last trace, same address, same stack pointer; from there on it only
// compares the words that the last walk read, the frame pointer at the place where this one has
// found it. The result is what a full walk would give, because a step depends on nothing else:
//   - the rule of the address; when code is unloaded a generation moves and the trace is forgotten
//   - the return address word, compared for every frame
//   - the frame pointer, where a rule uses it, or a guess through code without unwind information:
//     compared too
//   - other words, for the rare rules that read them: such frames end the part that is compared
// The check build compares every walk with libgcc's.
#ifndef RUNTIME_UNWIND_WALK_H
#define RUNTIME_UNWIND_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/frame.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/unwind_cache.h"
#include "runtime/unwind/walk_range.h"

// Where a walk begins: the state of the caller of a hook right after the call returns.
struct walk_start {
    uintptr_t pc;           // return address of the hook
    uintptr_t stack;        // stack pointer then
    uintptr_t *frame_slot;  // where the hook saved the frame pointer register
};

// That of the hook with this frame (__builtin_frame_address(0)), at which the caller's frame
// pointer and the return address lie. On x86-64 the caller's stack begins behind them. On aarch64
// they lie anywhere in the hook's frame: how far from its end, the hook's own unwind rule knows.
#if defined(__aarch64__)
struct walk_start walk_start_of(const uintptr_t *frame);
#else
ALWAYS_INLINE struct walk_start walk_start_of(const uintptr_t *frame) {
    return (struct walk_start){frame[1], (uintptr_t)(frame + 2), (uintptr_t *)frame};
}
#endif

// A word that the last walk read, and what it was.
struct walk_check {
    const uintptr_t *slot;
    uintptr_t value;
};

// A frame met by a walk, with the words that its step outwards read.
struct fresh_frame {
    struct frame frame;
    struct walk_check read;  // the return address' word; slot NULL: not read, or not as is usual
    uintptr_t used_frame;    // the frame pointer, or 0; not valid where the rule is a plain one
};

// A step reads no more words than these.
enum { CHECKS_PER_FRAME = 2 };

// A thread's last trace. One owner.
struct walk_trace {
    uint32_t generation;   // of the rules
    uint32_t count;        // 0: no trace
    struct frame *frames;  // outermost first; frames[-1].stack lies above every stack
    // Words read by the walk, outermost first: frame i goes on as before if the first
    // frames[i].check_count are unchanged. checks[-1] is walk_check_end().
    struct walk_check *checks;
    struct fresh_frame *fresh;  // room for a walk in progress
    uint32_t room;              // frames that its memory has room for, at most CAIRN_DEPTH_MAX
    uint32_t limit;             // most frames of a stack, with its mark, if it is cut
    uint32_t
        crowded;  // limit - 1: of a stack with so many frames the end is not known. 0: this one
                  // is cut as walk_limit_depth says, so that the next one may begin elsewhere
    uint32_t usable_count;   // outer frames that can be verified
    uint32_t guessed_count;  // outer frames up to the first from which the way is guessed; 0: none;
                             // UINT32_MAX: cut, as above
    struct walk_range range;
    uintptr_t next_pc;  // between two steps of a walk
    // Gives a trace whose stack is deeper than `limit` room for a deeper one, by walk_trace_place,
    // and forgets what pointed into it. False: there is none, and the stack is cut. NULL: the limit
    // is for good.
    bool (*deepen)(struct walk_trace *trace);
};

struct walk_result {
    uint32_t keep;      // outer frames whose addresses are those of the trace before
    bool has_new_code;  // a rule was worked out: code not seen before, or forgotten
};

// Cuts the stacks of all traces that are made from now on: the innermost `frames` stay, and
// outermost is the mark CAIRN_CUT_MAX_DEPTH, whose frame.stack is where the part begins that was
// cut off. 0: stacks are whole.
void walk_limit_depth(uint32_t frames);
extern HIDDEN uint32_t walk_cut_limit;  // walk_trace.limit of stacks that are cut so; 0: none is

// False without memory.
bool walk_trace_init(struct walk_trace *trace, uint32_t room);

// The same in memory that is there, zeroed, from the beginning of a page on; of a trace that had
// room before, what it was is forgotten. The first bytes, up to COLOUR_CHECKS, stay free.
// Interrupted for good at any place, it leaves a trace that holds stacks of the lower limit.
size_t walk_trace_bytes(uint32_t room);
void walk_trace_place(struct walk_trace *trace, uint8_t *memory, uint32_t room);
// Gives back all memory of a trace, which is of no use from then on. Nothing else lies in its
// pages.
void walk_trace_release(struct walk_trace *trace);
// The same of a list: the pages that have any of it.
void walk_list_release(void *start, size_t bytes);

// Gives back the address space for stacks deeper than `room`, which the trace must not be.
void walk_trace_shrink(struct walk_trace *trace, uint32_t room);

// Gives back the whole pages between the first `keep_bytes` and the first `bytes` of a list.
void walk_list_shrink(void *start, size_t keep_bytes, size_t bytes);

// Forgets the trace: its walk may have been interrupted for good.
void walk_trace_reset(struct walk_trace *trace);

// Makes the trace that of the present stack; a stack that was cut has a pseudo frame (enum
// cairn_cut) outermost. Reads stack memory only inside `range`, extended by sys_is_readable. No
// locks but those that object_find may take for new code. After a walk with new code the caller
// clears range.has_new_code once the code is noted.
// `differs`: what walk_differs_near said of the trace's own walk_seen; 0: not asked.
struct walk_result walk_stack_from(struct walk_trace *trace, const struct walk_start *start,
                                   uint32_t differs);

static inline struct walk_result walk_stack(struct walk_trace *trace,
                                            const struct walk_start *start) {
    return walk_stack_from(trace, start, 0);
}

// What the way outwards from a frame says about an address and about some code: for deciding
// whether an interrupted event is still on the stack.
struct walk_search {
    uintptr_t address;               // asked for: does it lie inside a frame?
    uintptr_t code_start, code_end;  // asked for: is this code among the callers?
    bool is_inside;                  // the address lies between two frames on one stack
    bool has_met_code;               // the way led into it
    bool has_met_signal;             // the way led through a signal frame
    bool is_complete;                // the way led to the outermost frame
    uintptr_t end;                   // that frame's stack pointer: tells stacks apart
};

// Follows the stack from `start` without a trace and without remembering rules, until it meets the
// code or ends; only by unwind information, never by guessing. `known` is memory that can be read.
// Safe in a signal handler that interrupted a walk of the same thread.
void walk_search(struct walk_search *search, const struct walk_start *start,
                 struct walk_range known);

// What lies before the outermost word of every list of words: a word that is never what it was, so
// that comparing finds the end of the list without counting. It lies at an odd address, as no word
// that a walk reads does.
struct walk_check walk_check_end(void);
ALWAYS_INLINE bool walk_is_end(const uintptr_t *slot) {
    return (uintptr_t)slot & 1;
}

// The word there, which may be the end's.
typedef uintptr_t walk_any_word __attribute__((aligned(1)));
ALWAYS_INLINE uintptr_t walk_word(const uintptr_t *slot) {
    return *(const walk_any_word *)slot;
}

ALWAYS_INLINE bool check_differs(const struct walk_check *check) {
    return walk_word(check->slot) != check->value;
}

// Compares the words that decide the way on from a frame with `count` of them, from the inside out:
// words further out are only looked at once those before them agree, so nothing is read that the
// stack does not have. The number of words that were not reached, counting one that differs; 0: all
// agree, and walk_check_end() was met.
ALWAYS_INLINE uint32_t checks_verify(const struct walk_check *checks, uint32_t count) {
    const struct walk_check *check = checks + count;
    for (;; check -= 4) {
        if (unlikely(check_differs(check - 1))) break;
        if (unlikely(check_differs(check - 2))) return (uint32_t)(check - 1 - checks);
        if (unlikely(check_differs(check - 3))) return (uint32_t)(check - 2 - checks);
        if (unlikely(check_differs(check - 4))) return (uint32_t)(check - 3 - checks);
    }
    return (uint32_t)(check - checks);
}

// What a hook needs to know of a stack that was walked before, to tell it again, and what it stands
// for.
struct walk_seen {
    const uintptr_t *frame;        // walk_start.frame_slot then; NULL: nothing is remembered
    uintptr_t pc;                  // walk_start.pc
    const struct walk_check *end;  // of check_count words, outermost first, after walk_check_end()
    uint32_t check_count;
    uint32_t value;  // the owner's
};

ALWAYS_INLINE const struct walk_check *walk_seen_checks(const struct walk_seen *seen) {
    return seen->end - seen->check_count;
}

// The trace as something to be seen again; nothing where it cannot be verified by comparing.
struct walk_seen walk_trace_seen(const struct walk_trace *trace, uint32_t value);

enum { WALK_SAME = 0, WALK_ELSEWHERE = UINT32_MAX };

// Compares the stack of a hook with this frame with one that was seen, as long as no rules were
// forgotten in between: true, the same, frame for frame, which the list's end tells by its place.
// The stack pointer is known with the frame: it lies above it. Otherwise `near` says where to look
// for what differs (NULL: not even the caller).
ALWAYS_INLINE bool walk_is_same(const struct walk_seen *seen, const uintptr_t *frame,
                                const struct walk_check **near) {
    const struct walk_check *check = seen->end;
    const uintptr_t *slot;
    *near = NULL;
    if (unlikely(seen->frame != frame) || unlikely(seen->pc != frame[1])) return false;
    for (;; check -= 8) {
        if (unlikely(walk_word(slot = check[-1].slot) != check[-1].value)) break;
        if (unlikely(walk_word(slot = check[-2].slot) != check[-2].value)) break;
        if (unlikely(walk_word(slot = check[-3].slot) != check[-3].value)) break;
        if (unlikely(walk_word(slot = check[-4].slot) != check[-4].value)) break;
        if (unlikely(walk_word(slot = check[-5].slot) != check[-5].value)) break;
        if (unlikely(walk_word(slot = check[-6].slot) != check[-6].value)) break;
        if (unlikely(walk_word(slot = check[-7].slot) != check[-7].value)) break;
        if (unlikely(walk_word(slot = check[-8].slot) != check[-8].value)) break;
    }
    *near = check;
    return walk_is_end(slot);
}

// How much of such a stack differs: WALK_ELSEWHERE, not even the caller is the same; otherwise the
// number of words not reached, as checks_verify.
ALWAYS_INLINE uint32_t walk_differs_near(const struct walk_seen *seen,
                                         const struct walk_check *near) {
    const struct walk_check *checks = walk_seen_checks(seen);
    return near ? checks_verify(checks, (uint32_t)(near - checks)) : WALK_ELSEWHERE;
}

#endif
