// SPDX-License-Identifier: Apache-2.0
// Unwinding rules, one word per code address, shared by all threads.
//
// Nearly every frame follows one of four forms: CFA = stack or frame pointer + constant, return
// address at CFA - 8, frame pointer kept or saved at CFA - constant. Such a rule fits RULE_BITS;
// with all but the lowest bits of the address as a tag it is one 64-bit word, read and written
// atomically, so the cache needs no lock and a wrong answer is impossible: set index and tag
// together give the address back. What does not fit is RULE_SLOW and is worked out from its row
// each time.
//
// The sets in use are few at first, and four times as many whenever many of them hold two rules:
// addresses are spread over all of them, so that every few would touch a page of their own. The
// lowest RULE_LEAST_BITS of a set's number and the tag give the address back however many there
// are, so a thread that goes by another number finds a rule or not, and no wrong one.
//
// aarch64 has no fixed place for the return address, but saves it beside the frame pointer: a
// frame record of two words, at CFA - saved. Where the frame pointer is unchanged, `saved` is the
// place of the return address alone.
//
// Address here means return address: rules are those of the byte before it.
#ifndef RUNTIME_UNWIND_UNWIND_CACHE_H
#define RUNTIME_UNWIND_UNWIND_CACHE_H

#include <stdint.h>

#include "runtime/sys/sys.h"
#include "runtime/unwind/processor.h"

enum rule_kind {
    RULE_NONE = 0,         // not in the cache
    RULE_STACK = 1,        // CFA = stack pointer + cfa, not 0, frame pointer unchanged
    RULE_STACK_SAVED = 2,  // the same, frame pointer at CFA - saved
    RULE_FRAME = 3,        // CFA = frame pointer + cfa, frame pointer unchanged
    RULE_FRAME_SAVED = 4,  // the same, frame pointer at CFA - saved
    RULE_SLOW = 5,         // by its row: signal frames, realigned stacks, PLT entries
    RULE_END = 6,          // the outermost frame
    RULE_NO_CFI = 7,       // code without unwind information
};

// kind in bits 0-2, cfa / 8 in bits 3-17, saved / 8 from bit 18 on. On x86-64 functions save the
// frame pointer first of all, or nearly so; on aarch64 as far down as the frame is large.
enum { RULE_CFA_SHIFT = 3, RULE_CFA_BITS = 15, RULE_SAVED_SHIFT = 18 };
#if defined(__aarch64__)
enum { RULE_SAVED_BITS = 14 };
#else
enum { RULE_SAVED_BITS = 9 };
#endif
enum { RULE_BITS = RULE_SAVED_SHIFT + RULE_SAVED_BITS };

// Set and tag hold an address (PROCESSOR_ADDRESS_BITS), so there are no fewer sets.
#define RULE_LEAST_BITS (PROCESSOR_ADDRESS_BITS + RULE_BITS - 64u)
#define RULE_MOST_BITS (PROCESSOR_ADDRESS_BITS - 32u)
#define RULE_WAYS 2u

#define RULE_SETS ((uintptr_t)1 << RULE_MOST_BITS)

struct rule_cache {
    uint64_t *words;      // (atomic) the first ways of all sets, then the second ones
    uint32_t generation;  // (atomic)
    // Of the sets in use. Changed atomically, read plainly, as an operand: every number that it has
    // or had is as good.
    uint32_t set_mask;
    uint32_t full_count;  // (atomic) times that a set got a second rule since it became that
};

extern HIDDEN struct rule_cache rule_cache;

// Moved whenever rules are forgotten: what was worked out with them holds no longer.
ALWAYS_INLINE uint32_t rule_generation(void) {
    return __atomic_load_n(&rule_cache.generation, __ATOMIC_ACQUIRE);
}

ALWAYS_INLINE uint64_t rule_kind(uint64_t rule) {
    return rule & 7;
}
// Asks for nothing but the stack pointer.
ALWAYS_INLINE bool rule_is_plain(uint64_t rule) {
    return rule_kind(rule) - RULE_STACK <= RULE_STACK_SAVED - RULE_STACK;
}
ALWAYS_INLINE uintptr_t rule_cfa_offset(uint64_t rule) {
    return (rule >> RULE_CFA_SHIFT & ((1u << RULE_CFA_BITS) - 1)) * 8;
}
ALWAYS_INLINE uintptr_t rule_record_offset(uint64_t rule) {
    return (rule >> RULE_SAVED_SHIFT & ((1u << RULE_SAVED_BITS) - 1)) * 8;
}

// The form of RULE_NO_CFI at an address that no call returns to.
enum { RULE_NO_RETURN = RULE_NO_CFI | 1 << RULE_CFA_SHIFT };
ALWAYS_INLINE bool rule_is_no_return(uint64_t rule) {
    return (uint32_t)rule == RULE_NO_RETURN;
}

// How far below the CFA the frame pointer is saved, 0: unchanged; and the return address.
#if defined(__aarch64__)
ALWAYS_INLINE bool rule_saves_frame(uint64_t rule) {
    return rule_kind(rule) == RULE_STACK_SAVED || rule_kind(rule) == RULE_FRAME_SAVED;
}
ALWAYS_INLINE uintptr_t rule_saved_offset(uint64_t rule) {
    return rule_saves_frame(rule) ? rule_record_offset(rule) : 0;
}
ALWAYS_INLINE uintptr_t rule_return_offset(uint64_t rule) {
    return rule_record_offset(rule) - (rule_saves_frame(rule) ? 8 : 0);
}
#else
ALWAYS_INLINE uintptr_t rule_saved_offset(uint64_t rule) {
    return rule_record_offset(rule);
}
ALWAYS_INLINE uintptr_t rule_return_offset(uint64_t rule) {
    (void)rule;
    return 8;
}
#endif

// Tag = address without its lowest bits; the set mixes in higher bits, which the tag holds as well,
// so that (set, tag) determines the address.
ALWAYS_INLINE uint32_t rule_set(uintptr_t pc) {
    return (uint32_t)(pc ^ pc >> RULE_LEAST_BITS) & rule_cache.set_mask;
}
ALWAYS_INLINE uint64_t rule_tag(uintptr_t pc) {
    return (uint64_t)(pc >> RULE_LEAST_BITS) << RULE_BITS;
}

// The cached rule of a return address, or RULE_NONE.
ALWAYS_INLINE uint64_t rule_look_up(uintptr_t pc) {
    const uint64_t *set = &rule_cache.words[rule_set(pc)];
    uint64_t tag = rule_tag(pc);
    uint64_t first = __atomic_load_n(set, __ATOMIC_RELAXED) ^ tag;
    if (likely(first >> RULE_BITS == 0)) return first;
    uint64_t second = __atomic_load_n(set + RULE_SETS, __ATOMIC_RELAXED) ^ tag;
    return second >> RULE_BITS == 0 ? second : RULE_NONE;
}

// Whether that rule is this one, and lies where it is looked for first.
ALWAYS_INLINE bool rule_is_first(uintptr_t pc, uint32_t rule) {
    const uint64_t *set = &rule_cache.words[rule_set(pc)];
    return __atomic_load_n(set, __ATOMIC_RELAXED) == (rule_tag(pc) | rule);
}

// The code of the function around a return address; false: it is not known.
bool rule_find_code(uintptr_t pc, uintptr_t *start, uintptr_t *end);

// Works the rule out, and remembers it too. Never RULE_NONE.
uint64_t rule_work_out(uintptr_t pc);
uint64_t rule_find_slow(uintptr_t pc);

bool rule_init(void);

// Bytes of the cache that were touched.
uint64_t rule_touched_bytes(void);
// Gives back the memory of all rules, in a process that walks no stacks any more.
void rule_release(void);

// Forgets all rules; when code was unloaded. Threads that walk meanwhile may put one back.
void rule_forget_all(void);

#endif
