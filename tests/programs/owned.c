// SPDX-License-Identifier: Apache-2.0
// A program with an account of every block of its own, for an allocator that is linked into it. It
// calls nothing else that allocates, so that a recording of it has to say what it says at its end:
// calls, bytes, frees, bytes left, the highest total.
//
// With -DOWNED_JEMALLOC it uses jemalloc's own functions as well, which take flags.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(OWNED_JEMALLOC)
#include <jemalloc/jemalloc.h>
#endif

enum { KEPT = 400, ROUNDS = 20000 };

static struct account { uint64_t calls, bytes, frees, live, peak; } account;

struct owned {
    void *block;
    size_t size;
};

static struct owned kept[KEPT];
static uint32_t random_state = 1;

static uint32_t next_random(void) {
    random_state = random_state * 1103515245u + 12345u;
    return random_state >> 8;
}

static void took(struct owned *owned, void *block, size_t size) {
    if (!block) abort();
    memset(block, (int)size, size);
    *owned = (struct owned){block, size};
    account.calls++;
    account.bytes += size;
    account.live += size;
    if (account.live > account.peak) account.peak = account.live;
}

static void gave(struct owned *owned) {
    account.frees++;
    account.live -= owned->size;
    *owned = (struct owned){NULL, 0};
}

// A block that was made larger or smaller counts as freed and allocated again.
static void resized(struct owned *owned, void *block, size_t size) {
    uint8_t byte = (uint8_t)owned->size;
    size_t common = owned->size < size ? owned->size : size;
    for (size_t i = 0; i < common; i++)
        if (((uint8_t *)block)[i] != byte) abort();
    gave(owned);
    took(owned, block, size);
}

#if defined(OWNED_JEMALLOC)
enum { FORMS = 7 };

__attribute__((noinline)) static void take_more(struct owned *owned, unsigned form, size_t size) {
    if (form == 5) took(owned, mallocx(size, 0), size);
    if (form == 6) took(owned, mallocx(size, MALLOCX_ALIGN(256) | MALLOCX_ZERO), size);
}

__attribute__((noinline)) static void give(struct owned *owned, unsigned form) {
    void *block = owned->block;
    gave(owned);
    if (form % 3 == 0) free(block);
    if (form % 3 == 1) dallocx(block, 0);
    if (form % 3 == 2) sdallocx(block, sallocx(block, 0), 0);
}

__attribute__((noinline)) static void resize(struct owned *owned, unsigned form, size_t size) {
    if (form % 3 == 0) resized(owned, realloc(owned->block, size), size);
    if (form % 3 == 1) resized(owned, rallocx(owned->block, size, 0), size);
    // in place, or not at all: what it holds then is at least what was asked for
    if (form % 3 == 2 && xallocx(owned->block, size, 0, 0) >= size)
        resized(owned, owned->block, size);
}
#else
enum { FORMS = 5 };

static void take_more(struct owned *owned, unsigned form, size_t size) {
    (void)owned, (void)form, (void)size;
}

__attribute__((noinline)) static void give(struct owned *owned, unsigned form) {
    void *block = owned->block;
    (void)form;
    gave(owned);
    free(block);
}

__attribute__((noinline)) static void resize(struct owned *owned, unsigned form, size_t size) {
    (void)form;
    resized(owned, realloc(owned->block, size), size);
}
#endif

__attribute__((noinline)) static void take(struct owned *owned, unsigned form, size_t size) {
    void *block = NULL;
    if (form == 0) took(owned, malloc(size), size);
    if (form == 1) took(owned, calloc(1, size), size);
    if (form == 2) took(owned, aligned_alloc(64, size), size);
    if (form == 3 && posix_memalign(&block, 128, size) == 0) took(owned, block, size);
    if (form == 4) took(owned, memalign(32, size), size);
    take_more(owned, form, size);
}

static size_t next_size(void) {
    uint32_t number = next_random();
    if (number % 50 == 0) return 1 + number % 300000;
    return 1 + number % (number % 3 ? 40 : 3000);
}

static void *work(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        struct owned *owned = &kept[next_random() % KEPT];
        unsigned form = next_random();
        if (!owned->block)
            take(owned, form % FORMS, next_size());
        else if (form % 4)
            give(owned, form);
        else
            resize(owned, form / 4, next_size());
    }
    return unused;
}

int main(void) {
    char line[256];
    work(NULL);
    int length =
        snprintf(line, sizeof line, "%llu %llu %llu %llu %llu\n", (unsigned long long)account.calls,
                 (unsigned long long)account.bytes, (unsigned long long)account.frees,
                 (unsigned long long)account.live, (unsigned long long)account.peak);
    return write(STDOUT_FILENO, line, (size_t)length) == length ? 3 : 1;
}
