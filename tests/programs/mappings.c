// SPDX-License-Identifier: Apache-2.0
// Maps, unmaps and moves pages in a window of its own, from three places, and knows whose each page
// is. Prints as JSON what each place holds at the end and held when all together held most, and
// what /proc/self/maps says of the window.
//
//     mappings STEPS SEED           one thread
//     mappings threads COUNT STEPS  each thread maps and unmaps; keeps one mapping of 1 MiB
//     mappings fork                 maps 1 MiB; a child unmaps a quarter of it and maps 2 MiB
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 4096, LONGEST = 64, PLACES = 4, MOVED = 3, MIB = 1 << 20 };
static size_t page_bytes;  // of the kernel
static char *window;
static uint8_t owner[PAGES];          // place + 1; 0: given back
static uint32_t piece[PAGES], calls;  // by which call the page came; mremap moves one mapping
static long held[PLACES], at_peak[PLACES], highest;

#define PLACE __attribute__((noinline)) static void *

// A length that ends in the last page is rounded up to its end.
static size_t length_of(uint32_t count) {
    return (count - 1) * page_bytes + 1;
}

static void *fixed(uint32_t page, uint32_t count, int flags) {
    void *result = mmap(window + page * page_bytes, length_of(count), PROT_READ | PROT_WRITE,
                        MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
    if (result == MAP_FAILED) abort();
    return result;
}

PLACE place_first(uint32_t page, uint32_t count) {
    return fixed(page, count, MAP_PRIVATE);
}
PLACE place_second(uint32_t page, uint32_t count) {
    return fixed(page, count, MAP_PRIVATE | MAP_NORESERVE);
}
PLACE place_third(uint32_t page, uint32_t count) {
    return fixed(page, count, MAP_SHARED);
}
PLACE place_moved(uint32_t from, uint32_t count, uint32_t to) {
    return mremap(window + from * page_bytes, count * page_bytes, count * page_bytes,
                  MREMAP_MAYMOVE | MREMAP_FIXED, window + to * page_bytes);
}

static void own(uint32_t page, uint32_t count, int place) {
    long all = 0;
    calls++;
    for (uint32_t i = page; i < page + count; i++) {
        if (owner[i]) held[owner[i] - 1] -= (long)page_bytes;
        if (place >= 0) held[place] += (long)page_bytes;
        owner[i] = (uint8_t)(place + 1);
        piece[i] = calls;
    }
    for (int i = 0; i < PLACES; i++) all += held[i];
    if (all <= highest) return;
    highest = all;
    memcpy(at_peak, held, sizeof held);
}

static uint32_t random_below(uint64_t *seed, uint32_t limit) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) % limit);
}

static void move(uint64_t *seed, uint32_t page) {
    uint32_t count = 1, to = random_below(seed, PAGES - LONGEST);
    while (count < LONGEST && piece[page + count] == piece[page]) count++;
    bool is_over = to < page + count && page < to + count;
    if (is_over || !owner[page] || place_moved(page, count, to) == MAP_FAILED) return;
    own(page, count, -1);
    own(to, count, MOVED);
}

static void step(uint64_t *seed) {
    uint32_t page = random_below(seed, PAGES - LONGEST), count = 1 + random_below(seed, LONGEST);
    switch (random_below(seed, 6)) {
    case 0:
        place_first(page, count);
        return own(page, count, 0);
    case 1:
        place_second(page, count);
        return own(page, count, 1);
    case 2:
        place_third(page, count);
        return own(page, count, 2);
    case 3:
        return move(seed, page);
    default:
        if (munmap(window + page * page_bytes, length_of(count)) != 0) abort();
        own(page, count, -1);
    }
}

// Mapped bytes of the window that may be read, as the kernel has it.
static uint64_t kernel_says(void) {
    char line[512], permissions[5];
    uint64_t start, end, all = 0, first = (uintptr_t)window, last = first + PAGES * page_bytes;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, permissions) == 3 &&
            start >= first && end <= last && permissions[0] == 'r')
            all += end - start;
    if (maps) fclose(maps);
    return all;
}

// Far below all else: what others map would else come to lie in the window's holes.
static void *reserve(size_t bytes) {
    void *const low = (void *)(uintptr_t)0x100000000000;
    void *all = mmap(low, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) abort();
    return all;
}

static void at_random(int steps, uint64_t seed) {
    static const char *const names[PLACES] = {"place_first", "place_second", "place_third",
                                              "place_moved"};
    window = reserve(PAGES * page_bytes);
    for (int i = 0; i < steps; i++) step(&seed);
    printf("{\"kernel\": %" PRIu64 ", \"highest\": %ld", kernel_says(), highest);
    for (int i = 0; i < PLACES; i++) printf(", \"%s\": [%ld, %ld]", names[i], held[i], at_peak[i]);
    puts("}");
}

PLACE place_thread(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *thread(void *steps) {
    for (long i = 0; i < (long)steps; i++) munmap(place_thread(MIB), MIB);
    return place_thread(MIB);
}

static void in_threads(int count, long steps) {
    pthread_t threads[64];
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, thread, (void *)steps);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void in_a_child(void) {
    char *mapped = place_thread(MIB);
    pid_t child = fork();
    if (child == 0) {
        munmap(mapped, MIB / 4);
        memset(place_thread(2 * MIB), 1, 2 * MIB);
        free(malloc(2 * MIB));
        exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (argc > 1 && !strcmp(argv[1], "fork"))
        in_a_child();
    else if (argc > 3 && !strcmp(argv[1], "threads"))
        in_threads(atoi(argv[2]), atol(argv[3]));
    else if (argc > 2)
        at_random(atoi(argv[1]), strtoull(argv[2], NULL, 10));
    else
        return 2;
    return 0;
}
