// SPDX-License-Identifier: Apache-2.0
// Blocks that are of no use in ways that are known to the byte; then it waits for its input to end.
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
    TINY = 7,  // allocators other than glibc's have such blocks at odd multiples of 8
};

static void *volatile kept[64];
static size_t kept_count;

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

int main(void) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    make_large();
    make_zeroed();
    make_tailed();
    make_copies();
    make_slack();
    make_tiny();
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return kept_count == 4 * COUNT + COPIES + 1 ? 3 : 1;
}
