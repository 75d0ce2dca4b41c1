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
//     While most guesses are wrong none is tried; whether it would have been right is looked at now
//     and then.
//   - Then a hash of the innermost words (its digest) leads to a stack. It is believed in the same
//     way.
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

enum { RECALL_NODES = 1024, RECALL_TRIAL = 512, RECALL_GUESSES = 1024, RECALL_DIGESTS = 8192 };

// Guesses are doubted after so many wrong ones with at most one right between two, and tried again
// after so many right ones in a row.
enum { RECALL_WRONG = 16, RECALL_RIGHT = 8 };

// A digest is of so many words at most and at least, a multiple of RECALL_DIGEST_STEP. They lie on
// the page of the hook's frame, so they can be read whatever the stack is by now.
enum { RECALL_DIGEST_MOST = 12, RECALL_DIGEST_STEP = 4 };

// How far digests are trusted: a wrong one takes more than a right one gives.
enum { DIGEST_WRONG = 2, DIGEST_TRUSTED = 32, DIGEST_TRUST_MOST = 64 };

// While guesses are doubted they are looked at in one of so many captures.
enum { RECALL_LOOK = 32 };

enum stack_cache_phase {
    RECALL_WAITS,     // not in use; the next trial comes when `left` captures are done
    RECALL_FILLS,     // in use, so that a trial finds it filled
    RECALL_TIMED_ON,  // a trial's captures with it
    RECALL_TIMED_OFF,
    RECALL_WORKS,  // in use until the next trial
};

// Where a remembered stack belongs. It has the inner `shared` words of its parent, then a word of
// another value.
struct stack_cache_place {
    uint32_t shared;
    uint16_t parent;        // 0: a root
    uint16_t digest_count;  // of a root: so many inner words make the digest of all stacks below it
};

struct stack_cache {
    // The nodes: [0] is none, and of no frame. Apart, so that none lies in two lines of the cache.
    struct walk_seen *seen;
    struct stack_cache_place *places;
    uint16_t *table;            // node numbers by hash of their place
    uint16_t *guesses;          // node numbers by what came before; 0: none yet
    uint16_t *digests;          // node numbers by their digest, the last one; 0: none
    struct walk_check *checks;  // of all nodes
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
    bool has_digests;       // one was noted since all were forgotten
    uint8_t digest_trust;   // digests are tried from DIGEST_TRUSTED on
    uint16_t root;          // where the last search began; 0: there was none
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
    const struct walk_seen *seen = &recall->seen[number];
    const struct walk_check *near;
    if (!walk_is_same(seen, frame, &near)) return NULL;
    recall->left--;
    recall->last = (uint16_t)number;
    return seen;
}

// Where a stack is noted: by the present words where the root of its kind has its inner ones. Any
// stack of the same hook's frame and return address has one, whatever words lie there.
ALWAYS_INLINE uint16_t *stack_cache_digest(const struct stack_cache *recall, uint32_t root) {
    const unsigned turn = 7, bits = 64, upper_shift = 40;
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    const struct walk_check *check = recall->seen[root].end;
    const struct walk_check *last = check - recall->places[root].digest_count;
    uint64_t words = 0;
    for (; check != last; check -= RECALL_DIGEST_STEP)
#pragma GCC unroll 4
        for (int i = 1; i <= RECALL_DIGEST_STEP; i++)
            words = (words << turn | words >> (bits - turn)) ^ *check[-i].slot;
    return &recall->digests[(words * factor >> upper_shift) % RECALL_DIGESTS];
}

// stack_cache_digested tries digests: there is no order, so that guesses are in vain.
ALWAYS_INLINE bool stack_cache_digests(const struct stack_cache *recall) {
    return recall->phase == RECALL_WORKS && recall->is_doubtful &&
           recall->digest_trust >= DIGEST_TRUSTED;
}

// The same as stack_cache_guessed by the digest, where the search of the last stack began at the
// same root.
ALWAYS_INLINE const struct walk_seen *stack_cache_digested(struct stack_cache *recall,
                                                           const uintptr_t *frame) {
    const struct walk_seen *root = &recall->seen[recall->root];
    if (recall->left % RECALL_LOOK == 0 || unlikely(recall->generation != rule_generation()))
        return NULL;
    if (root->frame != frame || root->pc != frame[1]) return NULL;
    if (!recall->places[recall->root].digest_count) return NULL;
    uint32_t number = *stack_cache_digest(recall, recall->root);
    const struct walk_seen *seen = &recall->seen[number];
    const struct walk_check *near;
    if (!walk_is_same(seen, frame, &near)) return NULL;
    if (recall->digest_trust < DIGEST_TRUST_MOST) recall->digest_trust++;
    recall->left--;
    recall->last = (uint16_t)number;
    return seen;
}

// The capture is done; if stack_cache_find did not know the stack, this is it (nothing if its frame
// is NULL).
void stack_cache_keep(struct stack_cache *recall, const struct walk_seen *seen);

// Forgets all stacks.
void stack_cache_reset(struct stack_cache *recall);

// Gives back its memory; it is of no use from then on.
void stack_cache_release(struct stack_cache *recall);

#endif
