// SPDX-License-Identifier: Apache-2.0
// The hash by which a stack is known: 64 bits in the thread's table and 32 more in the cell.
//
// It is the sum of one term a frame, which depends on the frame and its place counted from the
// outermost. So a stack that differs from the last one in a few frames is hashed by exchanging
// their terms, wherever they lie. With 96 bits and a random seed a wrong merge of two stacks among
// 10^7 has a probability of about 10^-15; the check build compares the frames of every event
// (runtime/check/check.c).
#ifndef RUNTIME_STACK_HASH_H
#define RUNTIME_STACK_HASH_H

#include <stdint.h>

struct stack_hash {
    uint64_t table;  // identity in the table
    uint64_t check;  // its upper half goes into the cell
};

// Odd constants from the fractional parts of the golden ratio and the square roots of 3, 5 and 7.
#define HASH_FACTOR 0x9E3779B97F4A7C15u
#define HASH_PLACE_TABLE 0x3C6EF372FE94F82Bu
#define HASH_PLACE_CHECK 0xA54FF53A5F1D36F1u

static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
#if defined(__x86_64__)
    __asm__("mulq %1" : "+a"(a), "+d"(b) : : "cc");  // of plain C, the halves go through memory
    return a ^ b;
#else
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

// The term of a frame at `place`. Both factors of the first product depend on the frame: terms of
// neighbouring addresses must not lie at equal distances, or sums of them would collide.
static inline struct stack_hash hash_frame(struct stack_hash seed, uint64_t frame, uint64_t place) {
    uint64_t turned = frame << 32 | frame >> 32;
    uint64_t check = hash_mix(frame ^ (seed.check + place * HASH_PLACE_CHECK),
                              turned ^ (seed.table + place * HASH_PLACE_TABLE));
    return (struct stack_hash){hash_mix(check ^ seed.table, HASH_FACTOR), check};
}

static inline struct stack_hash hash_with(struct stack_hash hash, struct stack_hash term) {
    return (struct stack_hash){hash.table + term.table, hash.check + term.check};
}

static inline struct stack_hash hash_without(struct stack_hash hash, struct stack_hash term) {
    return (struct stack_hash){hash.table - term.table, hash.check - term.check};
}

static inline uint32_t hash_check(struct stack_hash hash) {
    return (uint32_t)(hash.check >> 32);
}

#endif
