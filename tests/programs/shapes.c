// SPDX-License-Identifier: Apache-2.0
// Blocks of known shapes, each from a function of its own (tests/e2e/shapes.py has the numbers):
// temporary ones, of one size and of many, a buffer that realloc grows, and blocks that another
// thread frees.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *volatile sink;

// 1,000 temporary blocks; 10 that are not, since another is allocated first.
__attribute__((noinline)) static void *scratch(size_t size) {
    void *block = malloc(size);
    sink = block;
    return block;
}

__attribute__((noinline)) static void make_temporary(void) {
    for (int i = 0; i < 1000; i++) free(scratch(100));
    for (int i = 0; i < 5; i++) {
        void *first = scratch(100), *second = scratch(100);
        free(first);
        free(second);  // the last one allocated: temporary
    }
}

// 4,000 blocks: 16 and 32 bytes 1,000 times each, 500 of 48, and sizes 1,000 to 2,499 once each.
__attribute__((noinline)) static void *sized(size_t size) {
    void *block = malloc(size);
    sink = block;
    return block;
}

__attribute__((noinline)) static void make_sizes(void) {
    for (int i = 0; i < 1000; i++) free(sized(16));
    for (int i = 0; i < 1000; i++) free(sized(32));
    for (int i = 0; i < 500; i++) free(sized(48));
    for (size_t i = 0; i < 1500; i++) free(sized(1000 + i));
}

// 1,000 blocks from one place: after seven of 16 bytes each time one of 80. The first of these
// comes before the stack's sizes have an entry of their own.
__attribute__((noinline)) static void make_alternate(void) {
    for (int i = 0; i < 1000; i++) free(sized(i % 8 == 7 ? 80 : 16));
}

// 20 buffers of 8 bytes, each doubled 10 times; then cut to 100 bytes.
__attribute__((noinline)) static void *grow(void *block, size_t size) {
    void *grown = realloc(block, size);
    sink = grown;
    return grown;
}

__attribute__((noinline)) static void make_buffers(void) {
    for (int i = 0; i < 20; i++) {
        char *buffer = NULL;
        for (size_t size = 8; size <= 8192; size *= 2) {
            uintptr_t before = (uintptr_t)buffer;
            buffer = grow(buffer, size);
            memset(buffer, 1, size);
            sink = (void *)before;
        }
        free(grow(buffer, 100));
    }
}

__attribute__((noinline)) static void *produce(void) {
    void *block = malloc(40);
    sink = block;
    return block;
}

enum { PRODUCED = 300 };
static void *produced[PRODUCED];

static void *consume(void *count) {
    for (int i = 0; i < (int)(intptr_t)count; i++) free(produced[i]);
    return NULL;
}

int main(void) {
    pthread_t thread;
    make_temporary();
    make_sizes();
    make_alternate();
    make_buffers();
    for (int i = 0; i < PRODUCED; i++) produced[i] = produce();
    pthread_create(&thread, NULL, consume, (void *)(intptr_t)200);
    pthread_join(thread, NULL);
    for (int i = 200; i < 250; i++) free(produced[i]);
    return 0;
}
