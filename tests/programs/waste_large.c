// SPDX-License-Identifier: Apache-2.0
// Some hundred MiB of blocks that are of no use in ways that are known to the byte, in stretches
// and mixed; it says what they add up to, then it waits for its input to end. An argument: so many
// MiB.
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    ZEROED = 3000,
    TAILED = 1000,
    USED = 100,  // of those
    COPIED = 504,
    CONTENTS = 16,  // that the copies are of
    FULL = 700,
    WIDE = 100000,  // reaches out of any stretch of 64 KiB
    WIDE_USED = 60000,
    LARGE = 3 << 20,  // with a mapping of its own
    LARGE_USED = 2 << 20,
    LARGE_TOUCHED = (LARGE_USED / 4096 + 64) * 4096,
    LARGE_COUNT = 12,
    PAGE = 4096,
    HEADER = 16,
};

static void **kept;
static size_t kept_count, kept_room;
static struct { uint64_t untouched, zero, copies, tail, bytes, blocks; } truth;
static uint64_t state = 1;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint8_t *keep(void *block, size_t size) {
    if (kept_count == kept_room) {
        kept_room = kept_room ? 2 * kept_room : 1 << 20;
        // in a mapping of its own that is not the heap's
        kept = realloc(kept, kept_room * sizeof *kept);
    }
    truth.bytes += size;
    truth.blocks++;
    return kept[kept_count++] = block;
}

// No two blocks have the same, and none of its bytes is zero.
static void fill(uint8_t *block, size_t size) {
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word = next_random() | 0x0101010101010101;
        memcpy(block + at, &word, 8);
    }
    memset(block + size / 8 * 8, 1, size % 8);
}

static __attribute__((noinline)) void make_zeroed(void) {
    memset(keep(malloc(ZEROED), ZEROED), 0, ZEROED);
    truth.zero += ZEROED;
}

static __attribute__((noinline)) void make_tailed(void) {
    uint8_t *block = keep(malloc(TAILED), TAILED);
    memset(block, 0, TAILED);
    fill(block, USED);
    truth.tail += TAILED - USED;
}

static __attribute__((noinline)) void make_copy(void) {
    static unsigned made;
    uint8_t *block = keep(malloc(COPIED), COPIED);
    memset(block, 'A' + (int)(made % CONTENTS), COPIED);
    memcpy(block, "SECRET-OF-THE-PROGRAM", 21);
    if (made++ >= CONTENTS) truth.copies += COPIED;
}

static __attribute__((noinline)) void make_full(void) {
    fill(keep(malloc(FULL), FULL), FULL);
}

static __attribute__((noinline)) void make_wide(void) {
    uint8_t *block = keep(malloc(WIDE), WIDE);
    memset(block, 0, WIDE);
    fill(block, WIDE_USED);
    truth.tail += WIDE - WIDE_USED;
}

static __attribute__((noinline)) void make_large(void) {
    uint8_t *block = keep(malloc(LARGE), LARGE);
    fill(block, LARGE_USED);
    block[LARGE_TOUCHED - HEADER - 1] = 0;  // the last byte of that page
    for (size_t at = LARGE_USED; at < LARGE_TOUCHED - HEADER; at += PAGE) block[at] = 0;
    truth.tail += LARGE_TOUCHED - HEADER - LARGE_USED;
    truth.untouched += LARGE - (LARGE_TOUCHED - HEADER);
}

static volatile int is_ending;
static int is_damaged;

static void *churn(void *unused) {
    (void)unused;
    for (uint64_t i = 0; !is_ending; i++) {
        void **slot = &kept[LARGE_COUNT + next_random() % (kept_count - LARGE_COUNT)];
        size_t size = 16 + next_random() % 3000;
        uint8_t *block = malloc(size);
        memset(block, 1 + (int)(i % 200), size);
        free(*slot);
        *slot = block;
        for (size_t at = 0; at < size; at++)
            if (block[at] != 1 + i % 200) is_damaged = 1;
    }
    return NULL;
}

int main(int argc, char **argv) {
    static void (*const makers[])(void) = {make_zeroed, make_tailed, make_copy, make_full};
    const uint64_t wanted = (argc > 1 ? strtoull(argv[1], NULL, 10) : 340) << 20;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    for (int i = 0; i < LARGE_COUNT; i++) make_large();
    while (truth.bytes < wanted) {
        // stretches of one kind, of some hundred KiB, and all kinds mixed
        unsigned kind = (unsigned)(next_random() % 5);
        uint64_t count = next_random() % 1000;
        for (uint64_t i = 0; i < count; i++) makers[kind < 4 ? kind : next_random() % 4]();
        if (next_random() % 4 == 0) make_wide();
    }
    printf("{\"untouched_bytes\": %lu, \"zero_bytes\": %lu, \"duplicate_bytes\": %lu, "
           "\"tail_bytes\": %lu, \"bytes\": %lu, \"blocks\": %lu}\n",
           truth.untouched, truth.zero, truth.copies, truth.tail, truth.bytes, truth.blocks);
    fflush(stdout);
    pthread_t thread;
    bool has_churn = argc > 2;
    if (has_churn && pthread_create(&thread, NULL, churn, NULL)) return 1;
    while (getchar() != EOF) {
    }
    is_ending = 1;
    if (has_churn) pthread_join(thread, NULL);
    return kept_count == truth.blocks && !is_damaged ? 3 : 1;
}
