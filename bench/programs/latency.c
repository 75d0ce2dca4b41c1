// SPDX-License-Identifier: Apache-2.0
// How long single allocations take: latency CALLS. Makes and frees blocks of mixed sizes while some
// thousands live, times every pair of malloc and free by itself, and prints percentiles in
// nanoseconds: `p50 p99 p99.9 most`. The clock is read without a system call; what reading costs is
// in every figure, with and without a profiler.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LIVE_BLOCKS 4096u
#define LARGEST_BYTES 2000u
// Longer ones are counted as this long: 16 ms in steps of 1 ns.
#define LONGEST_NS (1u << 24)

static uint32_t *calls_of_ns;
static void *live[LIVE_BLOCKS];

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// One of several callers, so that stacks differ.
__attribute__((noinline)) static uint64_t replace(uint64_t random, int depth) {
    if (depth) {
        uint64_t spent = replace(random, depth - 1);
        __asm__ volatile("" : "+r"(spent));
        return spent;
    }
    void **slot = &live[random % LIVE_BLOCKS];
    size_t bytes = (random >> 32) % LARGEST_BYTES + 1;
    uint64_t start = now_ns();
    free(*slot);
    *slot = malloc(bytes);
    uint64_t spent = now_ns() - start;
    memset(*slot, 1, bytes);
    return spent;
}

static uint32_t percentile(uint64_t calls, double share) {
    uint64_t wanted = (uint64_t)((double)calls * share), seen = 0;
    for (uint32_t ns = 0; ns < LONGEST_NS; ns++) {
        seen += calls_of_ns[ns];
        if (seen > wanted) return ns;
    }
    return LONGEST_NS;
}

int main(int argc, char **argv) {
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, random = 88172645463325252u;
    uint64_t most = 0;
    calls_of_ns = mmap(NULL, LONGEST_NS * sizeof *calls_of_ns, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (calls_of_ns == MAP_FAILED) return 1;
    // The first tenth warms up: it is not counted.
    for (uint64_t i = 0; i < calls + calls / 10; i++) {
        uint64_t spent = replace(next_random(&random), (int)(i % 20));
        if (i < calls / 10) continue;
        if (spent > most) most = spent;
        calls_of_ns[spent < LONGEST_NS ? spent : LONGEST_NS - 1]++;
    }
    printf("%u %u %u %llu\n", percentile(calls, 0.5), percentile(calls, 0.99),
           percentile(calls, 0.999), (unsigned long long)most);
    return 0;
}
