// SPDX-License-Identifier: Apache-2.0
// Has some of everything that resident memory consists of, then says what glibc says of its heap
// ("FREE ARENAS SLACK": bytes in chunks that are free, its number of arenas, rounding and headers
// of the blocks) and waits for the end of its input. The heap does not change after that line.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BLOCKS = 2000,
    BLOCK_BYTES = 3000,
    LARGE_BYTES = 8 << 20,
    STACK_BYTES = 300000,
    SHARED_BYTES = 4 << 20,
    MAPPED_BYTES = 3 << 20,
    THREADS = 2,
};

static pthread_barrier_t is_ready;
static char *held[THREADS + 1][BLOCKS];

static void fill_heap(char **blocks) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
    for (int i = 0; i < BLOCKS; i += 3) free(blocks[i]);
}

static void *run_thread(void *blocks) {
    char stack[STACK_BYTES];
    memset(stack, 1, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory");
    fill_heap(blocks);
    pthread_barrier_wait(&is_ready);
    pause();
    return NULL;
}

// Rounding and headers of the small blocks that are left.
static size_t slack_of_blocks(void) {
    size_t slack = 0;
    for (int i = 0; i <= THREADS; i++)
        for (int k = 0; k < BLOCKS; k++)
            if (k % 3) slack += malloc_usable_size(held[i][k]) - BLOCK_BYTES + sizeof(size_t);
    return slack;
}

int main(void) {
    char line[128], input;
    pthread_t threads[THREADS];
    pthread_barrier_init(&is_ready, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run_thread, held[i]);
    pthread_barrier_wait(&is_ready);
    fill_heap(held[THREADS]);
    char *large = memset(malloc(LARGE_BYTES), 1, LARGE_BYTES);
    int file = memfd_create("parts", MFD_CLOEXEC);
    if (ftruncate(file, SHARED_BYTES)) return 1;
    char *shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(shared, 1, SHARED_BYTES);
    char *mapped =
        mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapped, 1, MAPPED_BYTES);
    struct mallinfo2 info = mallinfo2();
    int length = snprintf(line, sizeof line, "%zu %d %zu\n", info.fordblks - info.fsmblks,
                          THREADS + 1, slack_of_blocks() + malloc_usable_size(large) - LARGE_BYTES);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
    while (read(STDIN_FILENO, &input, 1) > 0) {
    }
    _exit(large && shared && mapped ? 0 : 1);
}
