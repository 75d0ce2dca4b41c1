// SPDX-License-Identifier: Apache-2.0
// The hash by which a stack is known: 64 bits in the thread's table and 32 more in the cell.
//
// Frames are taken in one after the other, from the outermost on; what was taken in so far is the
// hash of an outer part. So a stack that differs from the last one in its inner frames is hashed
// from there on. With 96 bits and a random seed a wrong merge of two stacks among 10^7 has a
// probability of about 10^-15; the check build compares the frames of every event
// (runtime/check/check.c).
#ifndef RUNTIME_STACK_HASH_H
#define RUNTIME_STACK_HASH_H

#include <stdint.h>

struct stack_hash {
    uint64_t table;  // identity in the table
    uint64_t check;  // its upper half goes into the cell
};

// From the fractional part of the golden ratio.
#define HASH_FACTOR 0x9E3779B97F4A7C15u

// Both halves of a product.
struct hash_product {
    uint64_t low, high;
};

static inline struct hash_product hash_multiply(uint64_t a, uint64_t b) {
#if defined(__x86_64__)
    uint64_t high;
    __asm__("mulq %2" : "+a"(a), "=d"(high) : "r"(b) : "cc");  // of C, halves go through memory
    return (struct hash_product){a, high};
#else
    __uint128_t product = (__uint128_t)a * b;
    return (struct hash_product){(uint64_t)product, (uint64_t)(product >> 64)};
#endif
}

static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    struct hash_product product = hash_multiply(a, b);
    return product.low ^ product.high;
}

// Of no frame. What a hash stands for begins with another one for each `kind`.
enum hash_kind { HASH_STACK, HASH_FOREIGN };
static inline struct stack_hash hash_begin(struct stack_hash seed, enum hash_kind kind) {
    return (struct stack_hash){seed.table + kind * HASH_FACTOR, 0};
}

// The factor is secret, so nobody knows which frames make equal products; it is odd, so that the
// lower halves of two frames never are. Where two hashes meet all the same, the sums of these
// differ still.
static inline struct stack_hash hash_with(struct stack_hash hash, struct stack_hash seed,
                                          uint64_t frame) {
    struct hash_product product = hash_multiply(hash.table ^ frame, seed.check | 1);
    return (struct stack_hash){product.low ^ product.high, hash.check + product.low};
}

static inline uint32_t hash_check(struct stack_hash hash) {
    return (uint32_t)(hash.check >> 32);
}

#endif
