// SPDX-License-Identifier: Apache-2.0
// An allocator that signal handlers may call at any moment: it only moves a pointer and never gives
// memory back. libc's own would be broken by a handler that allocates, with or without cairn.
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define HOOK __attribute__((visibility("default")))
#define HEAP_BYTES ((size_t)16 << 30)
#define ALIGNMENT 16

static _Atomic(uint8_t *) heap;
static atomic_size_t used;

static uint8_t *heap_base(void) {
    uint8_t *base = heap;
    if (base) return base;
    base = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    uint8_t *expected = NULL;
    if (atomic_compare_exchange_strong(&heap, &expected, base)) return base;
    munmap(base, HEAP_BYTES);
    return expected;
}

// The word before a block holds its size.
static void *take(size_t alignment, size_t bytes) {
    if (bytes > HEAP_BYTES / 4 || alignment > HEAP_BYTES / 4 || !heap_base()) {
        errno = ENOMEM;
        return NULL;
    }
    size_t whole = (bytes + 2 * ALIGNMENT + alignment) & ~(size_t)(ALIGNMENT - 1);
    size_t at = atomic_fetch_add(&used, whole);
    if (at + whole > HEAP_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t block = (uintptr_t)heap + at + ALIGNMENT;
    block = (block + alignment - 1) / alignment * alignment;
    memcpy((void *)(block - sizeof bytes), &bytes, sizeof bytes);
    return (void *)block;
}

HOOK void *malloc(size_t bytes) {
    return take(ALIGNMENT, bytes);
}

HOOK void free(void *block) {
    (void)block;
}

HOOK void *calloc(size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
    return take(ALIGNMENT, total);
}

HOOK size_t malloc_usable_size(void *block) {
    size_t bytes = 0;
    if (block) memcpy(&bytes, (uint8_t *)block - sizeof bytes, sizeof bytes);
    return bytes;
}

HOOK void *realloc(void *block, size_t bytes) {
    void *grown = take(ALIGNMENT, bytes);
    size_t kept = malloc_usable_size(block);
    if (grown && block) memcpy(grown, block, kept < bytes ? kept : bytes);
    return grown;
}

HOOK void *memalign(size_t alignment, size_t bytes) {
    return take(alignment, bytes);
}

HOOK void *aligned_alloc(size_t alignment, size_t bytes) {
    return take(alignment, bytes);
}

HOOK int posix_memalign(void **result, size_t alignment, size_t bytes) {
    void *block = take(alignment, bytes);
    if (block) *result = block;
    return block ? 0 : ENOMEM;
}
