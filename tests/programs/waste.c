// SPDX-License-Identifier: Apache-2.0
// Blocks that are of no use in ways that are known to the byte; then it waits for its input to end.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    LARGE = 4 << 20,  // with a mapping of its own
    ZEROED = 3000,
    TAILED = 1000,
    USED = 100,  // of those
    COPIED = 504,
    SLACK = 25,
    COUNT = 10,
    COPIES = 20,
    PAGE = 4096,
    SPARSE = 60,
    SMALL = 72,
    BETWEEN = 6000,
    TINY = 7,  // allocators other than glibc's have such blocks at odd multiples of 8
};

static void *volatile kept[64];
static size_t kept_count;
static void *volatile keep_sparse[SPARSE + 2];

static char *keep(char *block) {
    kept[kept_count++] = block;
    return block;
}

// No byte is zero, and no two numbers give the same.
static void fill(char *block, size_t size, int number) {
    memset(block, 1 + number, size);
}

static __attribute__((noinline)) void make_large(void) {
    fill(keep(malloc(LARGE)), sizeof(uint64_t), 100);
}

static __attribute__((noinline)) void make_zeroed(void) {
    for (int i = 0; i < COUNT; i++) memset(keep(malloc(ZEROED)), 0, ZEROED);
}

static __attribute__((noinline)) void make_tailed(void) {
    for (int i = 0; i < COUNT; i++) {
        char *block = keep(malloc(TAILED));
        memset(block, 0, TAILED);
        fill(block, USED, i);
    }
}

static __attribute__((noinline)) void make_copies(void) {
    for (int i = 0; i < COPIES; i++) {
        char *block = keep(malloc(COPIED));
        for (int at = 0; at < COPIED; at += 8) memcpy(block + at, "SECRET!!", 8);
    }
}

static __attribute__((noinline)) void make_slack(void) {
    for (int i = 0; i < COUNT; i++) fill(keep(malloc(SLACK)), SLACK, i);
}

static __attribute__((noinline)) void make_tiny(void) {
    for (int i = 0; i < COUNT; i++) fill(keep(malloc(TINY)), TINY, 50 + i);
}

// What pages with at most an eighth of them in these blocks have beside them, by the blocks' share.
static uint64_t sparse_bytes(char *const *blocks, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 1; i + 1 < count; i++) {
        const uint64_t start = (uintptr_t)blocks[i], end = start + malloc_usable_size(blocks[i]);
        for (uint64_t page = start / PAGE * PAGE; page < end; page += PAGE) {
            uint64_t live = 0, own = 0;
            for (size_t k = 0; k < count; k++) {
                uint64_t from = (uintptr_t)blocks[k], to = from + malloc_usable_size(blocks[k]);
                if (from < page) from = page;
                if (to > page + PAGE) to = page + PAGE;
                if (to > from) live += to - from;
                if (to > from && k == i) own = to - from;
            }
            if (live <= PAGE / 8) sum += (PAGE - live) * own / live;
        }
    }
    return sum;
}

// Small blocks with free memory between them, and large ones around.
static __attribute__((noinline)) uint64_t make_sparse(void) {
    char *blocks[SPARSE + 2], *between[SPARSE];
    fill(blocks[0] = malloc(3 * PAGE), 3 * PAGE, 120);
    for (int i = 0; i < SPARSE; i++) {
        fill(between[i] = malloc(BETWEEN), BETWEEN, 121);
        fill(blocks[i + 1] = malloc(SMALL), SMALL, i);
    }
    fill(blocks[SPARSE + 1] = malloc(3 * PAGE), 3 * PAGE, 122);
    for (int i = 0; i < SPARSE; i++) free(between[i]);
    for (int i = 0; i < SPARSE + 2; i++) keep_sparse[i] = blocks[i];
    return sparse_bytes(blocks, SPARSE + 2);
}

int main(void) {
    static char buffer[BUFSIZ], line[BUFSIZ];  // none of them lies between the blocks
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    setvbuf(stdin, line, _IOFBF, sizeof line);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    make_large();
    make_zeroed();
    make_tailed();
    make_copies();
    make_slack();
    make_tiny();
    const unsigned long sparse = make_sparse();
    printf("ready\n%lu\n", sparse);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return kept_count == 4 * COUNT + COPIES + 1 ? 3 : 1;
}
