// SPDX-License-Identifier: Apache-2.0
// Programs that nobody records, and that are asked why they are so big.
#ifndef TESTS_TRUTH_NOW_H
#define TESTS_TRUTH_NOW_H

#include <stdint.h>
#include <sys/mman.h>

#include "ledger.h"

enum { BLOCK = 4000, MIB = 1 << 20 };

static uint64_t state = 88172645463325252ull;

static inline uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

// A block of which no other has the contents, or all have.
static inline uint64_t *take_block(int is_equal) {
    uint64_t *words = malloc(BLOCK);
    for (size_t i = 0; i < BLOCK / sizeof *words; i++) words[i] = is_equal ? 1 + i : next_random();
    return words;
}

static inline void take_blocks(size_t bytes, int is_equal) {
    static uint64_t *kept[1 << 14];
    for (size_t i = 0; i < bytes / BLOCK; i++) kept[i] = take_block(is_equal);
    seen = kept;
}

static inline void map_touched(size_t bytes) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    memset(memory, 1, bytes);
}

// Resident pages of files, code and data.
static inline size_t file_bytes(void) {
    char line[128];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "RssFile: %zu", &kib) != 1) {
    }
    if (status) fclose(status);
    return kib << 10;
}

#endif
