// SPDX-License-Identifier: Apache-2.0
// What the recordings of a release are of (dev/compat-recordings.sh): a heap with a bit of
// everything that a recording can hold, the same at each run. `waits` begins with a heap and goes
// on when it is told to (attach), `forks` has a child that churns for long enough to be a recording
// of its own.
#define _GNU_SOURCE
#include <cairn/cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))
enum { ROWS = 200, ROUNDS = 40, CACHE_ENTRIES = 64, CHILD_CHURNS = 20 };

static void *table[ROWS];
static void *cache[CACHE_ENTRIES];
static void *volatile seen;

APART static void *make_row(size_t bytes) {
    void *row = malloc(bytes);
    seen = row;
    return row;
}

APART static void fill_table(void) {
    for (int i = 0; i < ROWS; i++) table[i] = make_row(100 + (size_t)i);
}

APART static void drop_half(void) {
    for (int i = 0; i < ROWS; i += 2) {
        free(table[i]);
        table[i] = NULL;
    }
}

APART static void churn(void) {
    for (int i = 0; i < ROUNDS; i++) {
        char *text = malloc(32);
        text = realloc(text, 3000);
        seen = text;
        free(text);
        free(aligned_alloc(64, 640));
    }
}

APART static void *worker(void *name) {
    pthread_setname_np(pthread_self(), name);
    cairn_region_begin("work");
    for (int i = 0; i < CACHE_ENTRIES; i++) cache[i] = make_row(1024);
    cairn_region_end(NULL);
    return NULL;
}

APART static void run_worker(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, "worker")) abort();
    pthread_join(thread, NULL);
    for (int i = 0; i < CACHE_ENTRIES / 2; i++) free(cache[i]);
}

APART static void use_pool(void) {
    struct cairn_pool *pool = cairn_pool_create("nodes");
    char *memory = malloc(4096);
    for (int i = 0; i < 16; i++) cairn_pool_alloc(pool, memory + 128 * i, 100);
    cairn_pool_free(pool, memory);
    cairn_pool_destroy(pool);
    free(memory);
}

APART static void map_arena(void) {
    size_t bytes = (size_t)1 << 20;
    void *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) abort();
    memset(arena, 1, 1 << 16);
    munmap((char *)arena + bytes / 2, bytes / 2);
}

static void work(void) {
    cairn_region_begin("load");
    fill_table();
    cairn_region_end(NULL);
    cairn_snapshot("loaded");
    drop_half();
    cairn_mark("served");
    churn();
    run_worker();
    use_pool();
    map_arena();
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "waits")) {
        fill_table();
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF) return 1;
    }
    if (!strcmp(how, "forks") && fork() == 0) {
        for (int i = 0; i < CHILD_CHURNS; i++) churn();
        return 0;
    }
    work();
    if (!strcmp(how, "forks")) wait(NULL);
    if (!strcmp(how, "waits")) {
        puts("done");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    }
    return 0;
}
