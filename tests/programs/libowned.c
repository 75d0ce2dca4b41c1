// SPDX-License-Identifier: Apache-2.0
// A library with an allocator of its own, the simplest there is: blocks side by side, none reused.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEAP_BYTES = 1 << 20, ALIGN = 16 };

static _Alignas(ALIGN) uint8_t heap[HEAP_BYTES];
static size_t used;  // (atomic)

void *malloc(size_t size) {
    size_t bytes = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    if (at + bytes <= sizeof heap) return heap + at;
    errno = ENOMEM;
    return NULL;
}

// Aborts for a block of anybody else.
void free(void *block) {
    if (block && (uintptr_t)block - (uintptr_t)heap >= sizeof heap) abort();
}

void *calloc(size_t count, size_t size) {
    return malloc(count * size);
}

void *realloc(void *block, size_t size) {
    void *moved = malloc(size);
    if (moved && block) memmove(moved, block, size);
    return moved;
}

// The allocator of its namespace is this one.
int owned_use(size_t count);

int owned_use(size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint8_t *block = (uint8_t *)strdup("here");
        if ((uintptr_t)block - (uintptr_t)heap >= sizeof heap) return 1;
        free(block);
    }
    return 0;
}
