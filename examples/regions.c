// SPDX-License-Identifier: Apache-2.0
// A program that tells cairn what it is doing: regions, a pool of its own, figures. It is C11 and
// C++, links nothing, and prints the same with and without cairn except for the figures.
//
//     cc -Iinclude examples/regions.c -o regions && cairn run ./regions
//     cairn report --view regions
//     cairn report --view pools
//     cairn report --region load/parse
#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 1000, LINE_BYTES = 40, ARENA_BYTES = 1 << 16, NODES = 500, NODE_BYTES = 24 };

static char *lines[LINES];

// Hands out parts of one block, and tells cairn of each.
struct arena {
    char *memory;
    size_t used;
    struct cairn_pool *pool;
};

static void *arena_take(struct arena *arena, size_t bytes) {
    void *part = arena->memory + arena->used;
    arena->used += bytes;
    cairn_pool_alloc(arena->pool, part, bytes);
    return part;
}

static void parse(int i) {
    cairn_region_begin("parse");
    lines[i] = (char *)malloc(LINE_BYTES);
    free(malloc(2 * LINE_BYTES));  // what one should reuse
    cairn_region_end(NULL);
}

static void load(void) {
    struct cairn_stats in_it;
    cairn_region_begin("load");
    for (int i = 0; i < LINES; i++) parse(i);
    if (cairn_region_end(&in_it))
        printf("load: %llu allocations of %llu bytes, %lld bytes more, %lld at most\n",
               (unsigned long long)in_it.allocations, (unsigned long long)in_it.allocated_bytes,
               (long long)in_it.live_bytes, (long long)in_it.peak_bytes);
}

int main(void) {
    struct cairn_stats figures;
    struct arena arena = {(char *)malloc(ARENA_BYTES), 0, cairn_pool_create("nodes")};
    load();
    for (int i = 0; i < NODES; i++) arena_take(&arena, NODE_BYTES);
    if (cairn_pool_stats("nodes", &figures))
        printf("nodes: %lld bytes in %llu parts\n", (long long)figures.live_bytes,
               (unsigned long long)(figures.allocations - figures.frees));
    cairn_pool_destroy(arena.pool);
    free(arena.memory);
    for (int i = 0; i < LINES; i++) free(lines[i]);
    if (cairn_region_stats("parse", &figures))
        printf("parse: %lld bytes of %llu left\n", (long long)figures.live_bytes,
               (unsigned long long)figures.allocated_bytes);
    puts("done");
    return 0;
}
