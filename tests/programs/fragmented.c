// SPDX-License-Identifier: Apache-2.0
// Fragments its heap: of each page but one block of 64 bytes stays, in the main arena and in that
// of a thread; beside it holds blocks that fill their pages, and one with a mapping of its own of
// which a quarter was touched. Says the numbers in a line, and waits for the end of its input.
// Before that it makes so many BLOCKS of 16 to 32 bytes.
//     fragmented PAGES [BLOCKS]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_BYTES 64      // a chunk of 80 bytes
#define FILLER_BYTES 4008  // a chunk of 4,016: both are a page
#define FULL_BYTES 60000
#define FULL_BLOCKS 100
#define LARGE_BYTES (8u << 20)
#define THREAD_PAGES 1000

static void **kept[2], *full[FULL_BLOCKS], *large;
static pthread_barrier_t done;

static void *keep_little(void) {
    void *block = malloc(KEPT_BYTES);
    memset(block, 'k', KEPT_BYTES);
    return block;
}

static void fragment(void **blocks, size_t pages) {
    void **fillers = calloc(pages, sizeof *fillers);
    for (size_t i = 0; i < pages; i++) {
        blocks[i] = keep_little();
        fillers[i] = malloc(FILLER_BYTES);
        memset(fillers[i], 'f', FILLER_BYTES);
    }
    void *fence = keep_little();  // or else the last filler would melt into the arena's end
    for (size_t i = 0; i < pages; i++) free(fillers[i]);
    free(fence);
    free(fillers);
}

static void keep_many(size_t count) {
    enum { LEAST = 16, STEP = 8, SIZES = 3 };
    for (size_t i = 0; i < count; i++) {
        size_t *block = malloc(LEAST + i % SIZES * STEP);
        *block = i;
    }
}

static void *keep_full(void) {
    void *block = malloc(FULL_BYTES);
    memset(block, 'f', FULL_BYTES);
    return block;
}

static void *work(void *unused) {
    fragment(kept[1], THREAD_PAGES);
    pthread_barrier_wait(&done);
    pause();
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    size_t pages = count > 1 ? strtoul(words[1], NULL, 10) : 10000;
    char line[256], byte;
    if (count > 2) keep_many(strtoul(words[2], NULL, 10));
    pthread_barrier_init(&done, NULL, 2);
    kept[0] = calloc(pages, sizeof **kept);
    kept[1] = calloc(THREAD_PAGES, sizeof **kept);
    for (int i = 0; i < FULL_BLOCKS; i++) full[i] = keep_full();
    fragment(kept[0], pages);
    pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&done);
    large = malloc(LARGE_BYTES);
    memset(large, 'l', LARGE_BYTES / 4);
    int length = snprintf(line, sizeof line, "kept=%zu size=%d full=%d large=%u\n",
                          pages + THREAD_PAGES, KEPT_BYTES, FULL_BLOCKS * FULL_BYTES, LARGE_BYTES);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
