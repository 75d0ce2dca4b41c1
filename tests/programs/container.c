// SPDX-License-Identifier: Apache-2.0
// Memory of each kind, in sizes that tests/e2e/cgroup_memory.py knows: 32 MiB of small blocks, of
// which 8 MiB were freed again, 32 MiB that it mapped itself, 8 MiB with a name, a stack of 2 MiB,
// and 16 MiB of shared memory. It prints whether the kernel took the name, and ends with its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1ul << 20)

enum { BLOCK_BYTES = 8192, NAME_WORD = 0x53564d41 };  // PR_SET_VMA

static pthread_barrier_t ready;

static void *fill_stack(void *unused) {
    char bytes[2 * MIB];
    memset(bytes, 1, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    pthread_barrier_wait(&ready);
    pause();
    return unused;
}

static void *touch(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    return memset(memory, 1, bytes);
}

static void fill_heap(void) {
    static char *blocks[32 * MIB / BLOCK_BYTES];
    const size_t count = sizeof blocks / sizeof *blocks, kept = 16 * MIB / BLOCK_BYTES;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(BLOCK_BYTES - 2 * sizeof(size_t));
        memset(blocks[i], (int)i, BLOCK_BYTES - 2 * sizeof(size_t));
    }
    for (size_t i = kept; i < count; i += 2) free(blocks[i]);
}

static void share(void) {
    int file = (int)syscall(SYS_memfd_create, "container-shared", 0);
    if (file < 0 || ftruncate(file, (off_t)(16 * MIB))) exit(1);
    void *memory = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) exit(1);
    memset(memory, 1, 16 * MIB);
}

int main(void) {
    pthread_t thread;
    fill_heap();
    touch(32 * MIB);
    void *named = touch(8 * MIB);
    int refused = prctl(NAME_WORD, 0, named, 8 * MIB, "container pool");
    share();
    pthread_barrier_init(&ready, NULL, 2);
    if (pthread_create(&thread, NULL, fill_stack, NULL)) return 1;
    pthread_barrier_wait(&ready);
    puts(refused ? "unnamed" : "named");
    fflush(stdout);
    while (getchar() != EOF) continue;
    return 0;
}
