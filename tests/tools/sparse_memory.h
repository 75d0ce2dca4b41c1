// SPDX-License-Identifier: Apache-2.0
// Memory of a process as the words of it that are not 0, in a few kilobytes: what heap_seeds.c
// writes and the fuzzer of other allocators' heaps reads. A file is a sequence of pairs; the low
// bits of the first number say what they are.
#ifndef TESTS_TOOLS_SPARSE_MEMORY_H
#define TESTS_TOOLS_SPARSE_MEMORY_H

#include <stdint.h>

struct sparse_pair {
    uint64_t place;  // an address and a kind
    uint64_t value;
};

enum sparse_kind {
    SPARSE_WORD,     // its value
    SPARSE_SEGMENT,  // memory from there on: its bytes
    SPARSE_DATA,     // the same, of a module's data
    SPARSE_THREAD,   // a thread's pointer
    SPARSE_KINDS = 8,
};

#endif
