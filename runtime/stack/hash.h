// SPDX-License-Identifier: Apache-2.0
// The hash by which a stack is known: 64 bits in the thread's table and 32 more in the cell.
//
// It is built frame by frame from the outermost, so that a prefix keeps its hash. With 96 bits and
// a random seed a wrong merge of two stacks among 10^7 has a probability of about 10^-15; the check
// build compares the frames of every event (stack/intern.c).
#ifndef RUNTIME_STACK_HASH_H
#define RUNTIME_STACK_HASH_H

#include <stdint.h>

struct stack_hash {
    uint64_t table;  // identity in the table
    uint64_t check;  // its upper half goes into the cell
};

// Odd constants from the fractional parts of the golden ratio and the square root of 3.
#define HASH_FACTOR_TABLE 0x9E3779B97F4A7C15u
#define HASH_FACTOR_CHECK 0xBB67AE8584CAA73Bu

// The hash with one more (inner) frame.
static inline struct stack_hash hash_frame(struct stack_hash hash, uint64_t frame) {
    __uint128_t product = (__uint128_t)(hash.table ^ frame) * HASH_FACTOR_TABLE;
    hash.table = (uint64_t)product ^ (uint64_t)(product >> 64);
    hash.check = ((hash.check << 23 | hash.check >> 41) + frame) * HASH_FACTOR_CHECK;
    return hash;
}

static inline uint32_t hash_check(struct stack_hash hash) {
    return (uint32_t)(hash.check >> 32);
}

#endif
