// SPDX-License-Identifier: Apache-2.0
// Many remembered stacks of a thread, for programs that allocate from a few stacks in turn.
//
// The walk remembers the last stack only (walk.h); when another one comes, the frames that differ
// are walked and hashed again. Here up to RECALL_NODES whole stacks are kept with what they stand
// for, each with the words that decide it, so that seeing one again costs one comparison a word.
//
//   - Most programs repeat the order of their stacks: which one came last time after the same one,
//     with the hook's frame and return address of now, is guessed first (guesses). A guess is only
//     believed once all its words are compared, so a place that several share costs time alone.
//     While most guesses are wrong none is tried, only whether it would have been right is noted.
//     While most guesses are wrong none is tried; whether it would have been right is looked at.
//   - Otherwise a stack is found by its hook's frame and return address (a root), and from there by
//     the first word that differs from it, inside out: a child of the root has the same inner words
//     up to there, so going on from it compares no word twice.
//
// It does not pay for every program: where most stacks are new, or differ in few inner frames, the
// plain walk is cheaper. The share of stacks found does not tell which, so the clock does: from
// time to time RECALL_TRIAL captures with and without are timed, and it is used only where it takes
// at most nine tenths of the time. No memory is taken before the first trial.
//
// One owner thread. The same conditions make it exact as those of the walk; when rules are
// forgotten all stacks are.
#ifndef RUNTIME_UNWIND_STACK_CACHE_H
#define RUNTIME_UNWIND_STACK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/unwind/walk.h"

enum { RECALL_NODES = 1024, RECALL_TRIAL = 512, RECALL_GUESSES = 1024 };

// Guesses are doubted after so many wrong ones with at most one right between two, and tried again
// after so many right ones in a row.
enum { RECALL_WRONG = 16, RECALL_RIGHT = 8 };

enum stack_cache_phase {
    RECALL_WAITS,     // not in use; the next trial comes when `left` captures are done
    RECALL_FILLS,     // in use, so that a trial finds it filled
    RECALL_TIMED_ON,  // a trial's captures with it
    RECALL_TIMED_OFF,
    RECALL_WORKS,  // in use until the next trial
};

// A remembered stack. It has the inner `shared` words of its parent, then a word of another value.
struct stack_cache_node {
    struct walk_seen seen;
    uint32_t shared;
    uint16_t parent;  // 0: a root
};

struct stack_cache {
    struct stack_cache_node *nodes;  // [0] is none, and of no frame
    uint16_t *table;                 // node numbers by hash of their place
    uint16_t *guesses;               // node numbers by what came before; 0: none yet
    struct walk_check *checks;       // of all nodes
    uint32_t node_count, check_count;
    uint32_t touched_count;  // most checks there ever were
    uint32_t check_limit;
    uint32_t generation;  // of the rules
    enum stack_cache_phase phase;
    uint32_t left;          // captures until the phase ends
    uint32_t pause;         // captures between two trials
    uint64_t ticks[2];      // of the present trial's captures, without and with it
    uint64_t began;         // the present capture, in a trial
    uint32_t wrong_left;    // `left` at the last wrong guess
    uint8_t run;            // wrong guesses; while they are doubted, right ones
    bool is_doubtful;       // guesses are not tried
    uint16_t last;          // the node seen last; 0: another stack, which is not kept
    uint16_t place;         // where the stack that was not found belongs: below this node…
    uint32_t place_shared;  // …after so many equal words
};

// Shares the memory for words that a process may spend on this among its threads.
void stack_cache_limit(struct stack_cache *recall, uint32_t thread_count);

// Looks for the stack of a hook with this frame, which is not the last one seen. NULL: unknown, or
// not in use; stack_cache_keep must follow when it is known. Counts as one capture. `is_guessed`:
// stack_cache_guessed was asked before, in vain, while stack_cache_guesses.
const struct walk_seen *stack_cache_find(struct stack_cache *recall, const uintptr_t *frame,
                                         bool is_guessed);

// stack_cache_guessed tries guesses.
ALWAYS_INLINE bool stack_cache_guesses(const struct stack_cache *recall) {
    return recall->phase == RECALL_WORKS && !recall->is_doubtful;
}

// Where the guess lies for a hook with this frame and return address. Any spread does that sends
// what follows different nodes to different places.
ALWAYS_INLINE uint16_t *stack_cache_guess(const struct stack_cache *recall, const uintptr_t *frame,
                                          uintptr_t pc) {
    const uint32_t odd_factor = 613;
    const unsigned frame_shift = 4;
    uint32_t place = (uint32_t)pc + (uint32_t)((uintptr_t)frame >> frame_shift);
    return &recall->guesses[(place + recall->last * odd_factor) % RECALL_GUESSES];
}

// The same as stack_cache_find and stack_cache_keep where no trial is on and the guess is right,
// without a call. NULL: it is to be looked for; nothing was changed.
ALWAYS_INLINE const struct walk_seen *stack_cache_guessed(struct stack_cache *recall,
                                                          const uintptr_t *frame) {
    if (!stack_cache_guesses(recall) || unlikely(recall->left == 0)) return NULL;
    if (unlikely(recall->generation != rule_generation())) return NULL;
    uint32_t number = *stack_cache_guess(recall, frame, frame[1]);
    const struct walk_seen *seen = &recall->nodes[number].seen;
    const struct walk_check *near;
    if (!walk_is_same(seen, frame, &near)) return NULL;
    recall->left--;
    recall->last = (uint16_t)number;
    return seen;
}

// The capture is done; if stack_cache_find did not know the stack, this is it (nothing if its frame
// is NULL).
void stack_cache_keep(struct stack_cache *recall, const struct walk_seen *seen);

// Forgets all stacks.
void stack_cache_reset(struct stack_cache *recall);

#endif
