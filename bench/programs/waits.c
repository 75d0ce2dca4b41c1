// SPDX-License-Identifier: Apache-2.0
// waits [MEBIBYTES...]: how long a read takes that has to wait for the one before it, anywhere in
// so much memory, in pages of 4 KiB and as far as the kernel gives them of 2 MiB. The limit for
// whatever looks a stack up in a table that is larger than the caches.
#include "bench/programs/parts.h"

#include <stdint.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64, READS = 3000000, PAGE_BYTES = 2 << 20 };

// Lines in one circle in random order, each with the number of the next.
static void circle_make(char *memory, uint32_t count, uint32_t *order) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t other = (uint32_t)((state >> 33) % (i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint32_t i = 0; i < count; i++)
        *(uint32_t *)(memory + (size_t)order[i] * LINE_BYTES) = order[(i + 1) % count];
}

static double read_ns(const char *memory) {
    uint32_t at = 0;
    double start = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < READS; i++) at = *(const uint32_t *)(memory + (size_t)at * LINE_BYTES);
    double ns = clock_ns(CLOCK_MONOTONIC) - start;
    __asm__ volatile("" : : "r"(at));
    return ns / READS;
}

static double waits_ns(size_t bytes, int advice) {
    char *all =
        mmap(NULL, bytes + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t count = (uint32_t)(bytes / LINE_BYTES);
    uint32_t *order = malloc(count * sizeof *order);
    if (all == MAP_FAILED || !order) exit(1);
    char *memory = all + (PAGE_BYTES - (uintptr_t)all % PAGE_BYTES) % PAGE_BYTES;
    madvise(memory, bytes, advice);
    circle_make(memory, count, order);
    double ns = read_ns(memory);
    munmap(all, bytes + PAGE_BYTES);
    free(order);
    return ns;
}

int main(int argc, char **argv) {
    static char *usual[] = {"waits", "1", "4", "16", "64"};
    const int usual_count = sizeof usual / sizeof *usual;
    char **sizes = argc > 1 ? argv : usual;
    for (int i = 1; i < (argc > 1 ? argc : usual_count); i++) {
        long mebibytes = atol(sizes[i]);
        if (mebibytes < 1 || mebibytes > 4096) {
            fprintf(stderr, "usage: waits [MEBIBYTES...], each from 1 to 4096\n");
            return 2;
        }
        size_t bytes = (size_t)mebibytes << 20;
        printf("%5ld MiB: %6.1f ns, with large pages %6.1f ns\n", mebibytes,
               waits_ns(bytes, MADV_NOHUGEPAGE), waits_ns(bytes, MADV_HUGEPAGE));
    }
    return 0;
}
