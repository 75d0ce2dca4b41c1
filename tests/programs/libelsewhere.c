// SPDX-License-Identifier: Apache-2.0
// A library for a namespace of its own (elsewhere.c loads it by dlmopen): everything that it calls
// is its namespace's, libc as well. It keeps its own account of what it allocated.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 1 << 14, THREADS_MAX = 16, BLOCKS = 32 };

// Calls that gave a block, the bytes they asked for, and how many of them are held.
struct account {
    uint64_t calls, bytes, held;
};

void elsewhere_keep(size_t count, size_t size);
void elsewhere_grow(size_t size);
void elsewhere_copy(size_t count, size_t length);
void elsewhere_drop(void);
int elsewhere_work(size_t threads, size_t turns);
int elsewhere_load(const char *path, size_t count, size_t size);
struct account elsewhere_account(void);

static struct account account;
static struct {
    void *block;
    size_t size;
} kept[KEPT_MAX];
static size_t kept_count;

static void note(size_t size, int is_more) {
    account.calls++;
    account.bytes += size;
    account.held += is_more ? size : 0;
}

static void put(void *block, size_t size) {
    note(size, 1);
    memset(block, (int)(size & 0xff), size);
    kept[kept_count].block = block;
    kept[kept_count++].size = size;
}

// By each of the ways there are.
__attribute__((noinline)) void elsewhere_keep(size_t count, size_t size) {
    for (size_t i = 0; i < count && kept_count < KEPT_MAX; i++) {
        void *block = NULL;
        if (i % 4 == 0) block = malloc(size);
        if (i % 4 == 1) block = calloc(1, size);
        if (i % 4 == 2 && posix_memalign(&block, 64, size)) abort();
        if (i % 4 == 3) block = realloc(NULL, size);
        put(block, size);
    }
}

__attribute__((noinline)) void elsewhere_grow(size_t size) {
    for (size_t i = 0; i < kept_count; i++) {
        size_t old = kept[i].size;
        uint8_t *block = realloc(kept[i].block, size);
        for (size_t at = 0; at < old && at < size; at++)
            if (block[at] != (old & 0xff)) abort();
        account.held -= old;
        note(size, 1);
        memset(block, (int)(size & 0xff), size);
        kept[i].block = block;
        kept[i].size = size;
    }
}

// libc's own calls of malloc.
__attribute__((noinline)) void elsewhere_copy(size_t count, size_t length) {
    char text[256];
    memset(text, 'a', sizeof text);
    text[length] = 0;
    for (size_t i = 0; i < count && kept_count < KEPT_MAX; i++) put(strdup(text), length + 1);
}

__attribute__((noinline)) void elsewhere_drop(void) {
    while (kept_count) {
        kept_count--;
        const uint8_t *block = kept[kept_count].block;
        size_t size = kept[kept_count].size;
        if (block[size - 1] != (size & 0xff)) abort();
        account.held -= size;
        free(kept[kept_count].block);
    }
}

struct work {
    size_t turns;
    uint64_t calls, bytes;
    int is_damaged;
};

static uint64_t check_of(const uint64_t *block) {
    return (uint64_t)(uintptr_t)block ^ block[0] * 0x9E3779B97F4A7C15u;
}

__attribute__((noinline)) static void *worker(void *argument) {
    struct work *work = argument;
    uint64_t *blocks[BLOCKS] = {0};
    for (size_t turn = 0; turn < work->turns; turn++) {
        uint64_t **block = &blocks[turn * 7 % BLOCKS], size = 16 + turn % 500;
        if (*block && (*block)[1] != check_of(*block)) work->is_damaged = 1;
        if (turn % 3) {
            free(*block);
            *block = malloc(size);
        } else {
            *block = realloc(*block, size);
        }
        work->calls++;
        work->bytes += size;
        (*block)[0] = size;
        (*block)[1] = check_of(*block);
    }
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    return NULL;
}

// Threads that the namespace's own libc starts. Everything is freed at the end.
int elsewhere_work(size_t threads, size_t turns) {
    pthread_t ids[THREADS_MAX];
    struct work works[THREADS_MAX] = {{0}};
    int is_damaged = 0;
    if (threads > THREADS_MAX) return 1;
    for (size_t i = 0; i < threads; i++) {
        works[i].turns = turns;
        if (pthread_create(&ids[i], NULL, worker, &works[i])) return 1;
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        account.calls += works[i].calls;
        account.bytes += works[i].bytes;
        is_damaged |= works[i].is_damaged;
    }
    return is_damaged;
}

// A module that comes into the namespace later, by the namespace's own dlopen.
int elsewhere_load(const char *path, size_t count, size_t size) {
    void *library = dlopen(path, RTLD_NOW);
    void *(*allocate)(size_t) = NULL;
    if (library) *(void **)&allocate = dlsym(library, "plugin_allocate");
    for (size_t i = 0; allocate && i < count; i++) put(allocate(size), size);
    return !allocate;
}

struct account elsewhere_account(void) {
    return account;
}
