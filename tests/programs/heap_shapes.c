// SPDX-License-Identifier: Apache-2.0
// Holds and frees known numbers of blocks in the main thread and in three others, says what is left
// in a line, and waits for the end of its input. Freed blocks have neighbours that stay, so that
// none melt. With an argument it first lets malloc_info write to that file.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 3
#define GROUPS 2000
#define SIZE 152           // of the blocks that are counted
#define SPACER_BYTES 1000  // of those between them
#define LARGE_BYTES (4u << 20)
#define LARGE_BLOCKS 3

static void *volatile kept[THREADS + 1][GROUPS][2];
static void *volatile large[LARGE_BLOCKS];
static FILE *volatile kept_file;
static pthread_barrier_t done;

// Half of the blocks are freed, each between two that stay.
static void fill(void *volatile (*blocks)[2]) {
    for (int i = 0; i < GROUPS; i++) {
        blocks[i][0] = malloc(SIZE);
        blocks[i][1] = malloc(SPACER_BYTES);
    }
    for (int i = 0; i < GROUPS; i += 2) free(blocks[i][0]);
}

static void *work(void *blocks) {
    fill(blocks);
    pthread_barrier_wait(&done);
    pause();
    return NULL;
}

static void write_info(const char *path) {
    static char buffer[1 << 18];
    FILE *file = fopen(path, "w");
    if (!file || setvbuf(file, buffer, _IOFBF, sizeof buffer)) exit(1);
    malloc_info(0, file);
    fflush(file);
    kept_file = file;
}

int main(int argc, char **argv) {
    pthread_t thread;
    char line[256];
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) pthread_create(&thread, NULL, work, (void *)kept[i + 1]);
    pthread_barrier_wait(&done);
    fill(kept[0]);
    for (int i = 0; i < LARGE_BLOCKS; i++) large[i] = malloc(LARGE_BYTES);
    if (argc > 1) write_info(argv[1]);
    int length =
        snprintf(line, sizeof line, "size=%d used=%d free=%d large=%u mapped=%d arenas=%d\n", SIZE,
                 (THREADS + 1) * GROUPS / 2, (THREADS + 1) * GROUPS / 2, LARGE_BYTES, LARGE_BLOCKS,
                 THREADS + 1);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
