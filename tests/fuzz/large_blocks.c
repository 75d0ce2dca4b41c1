// SPDX-License-Identifier: Apache-2.0
// Blocks that AddressSanitizer would map and unmap one by one, from a reserve that stays mapped:
// half of the time of a reader's run is the kernel's otherwise. The linker leads calls of the
// fuzzers' objects here (--wrap). What is not in use, and what lies between two blocks, is poisoned
// as in the sanitizer's own heap.
#include <errno.h>
#include <malloc.h>
#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_BYTES (100u << 10)
#define SLOT_BYTES (2u << 20)
#define BETWEEN_BYTES 4096u
#define SLOTS 48u

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);
void __wrap_free(void *block);

static char *slots;
static size_t sizes[SLOTS];  // 0: free

static size_t slot_of(const void *block) {
    uintptr_t at = (uintptr_t)block - (uintptr_t)slots;
    return slots && at < (uintptr_t)SLOTS * SLOT_BYTES ? at / SLOT_BYTES : SLOTS;
}

static bool reserve(void) {
    void *mapped = mmap(NULL, (size_t)SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return false;
    slots = mapped;
    __asan_poison_memory_region(slots, (size_t)SLOTS * SLOT_BYTES);
    return true;
}

static void *take(size_t size) {
    if (size < LARGE_BYTES || size > SLOT_BYTES - 2 * BETWEEN_BYTES) return NULL;
    if (!slots && !reserve()) return NULL;
    for (size_t i = 0; i < SLOTS; i++) {
        if (sizes[i]) continue;
        char *block = slots + i * SLOT_BYTES + BETWEEN_BYTES;
        sizes[i] = size;
        __asan_unpoison_memory_region(block, size);
        return block;
    }
    return NULL;
}

void *__wrap_malloc(size_t size) {
    void *block = take(size);
    return block ? block : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    size_t bytes;
    void *block = __builtin_mul_overflow(count, size, &bytes) ? NULL : take(bytes);
    return block ? memset(block, 0, bytes) : __real_calloc(count, size);
}

void __wrap_free(void *block) {
    size_t i = slot_of(block);
    if (i == SLOTS) {
        __real_free(block);
        return;
    }
    if (block != slots + i * SLOT_BYTES + BETWEEN_BYTES || !sizes[i])
        abort();  // no block, or twice
    __asan_poison_memory_region(block, sizes[i]);
    sizes[i] = 0;
}

void *__wrap_realloc(void *block, size_t size) {
    size_t i = slot_of(block);
    if (i == SLOTS && (!block || size < LARGE_BYTES)) {
        void *large = block ? NULL : take(size);
        return large ? large : __real_realloc(block, size);
    }
    size_t old = i < SLOTS ? sizes[i] : malloc_usable_size(block);
    if (!size) {
        __wrap_free(block);
        return NULL;
    }
    void *grown = __wrap_malloc(size);
    if (!grown) return NULL;
    memcpy(grown, block, old < size ? old : size);
    __wrap_free(block);
    return grown;
}

void *__wrap_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes)) return __wrap_realloc(block, bytes);
    errno = ENOMEM;
    return NULL;
}
