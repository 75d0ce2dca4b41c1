// SPDX-License-Identifier: Apache-2.0
// An allocator under the names that Rust's jemalloc crate links its jemalloc by. Blocks of one
// size, a power of two from 8 bytes on, lie side by side in a chunk without anything in between;
// larger ones get chunks of their own. One lock.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK_BYTES = 1 << 16, HEAD_BYTES = 4096, CLASSES = 13, LEAST_SHIFT = 3, IS_ZERO = 0x40 };

struct chunk {
    size_t block_bytes;
    size_t mapped_bytes;
};

static void *free_blocks[CLASSES];
static int is_locked;

static void lock(void) {
    while (__atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE)) {
    }
}

static void unlock(void) {
    __atomic_store_n(&is_locked, 0, __ATOMIC_RELEASE);
}

static struct chunk *chunk_of(const void *block) {
    return (struct chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK_BYTES - 1));
}

// Aligned to its size; `bytes` is a multiple of pages.
static struct chunk *make_chunk(size_t block_bytes, size_t bytes) {
    uint8_t *start =
        mmap(NULL, bytes + CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    struct chunk *chunk = chunk_of(start + CHUNK_BYTES - 1);
    *chunk = (struct chunk){block_bytes, bytes};
    return chunk;
}

static void fill(unsigned class) {
    size_t bytes = (size_t)1 << (class + LEAST_SHIFT);
    struct chunk *chunk = make_chunk(bytes, CHUNK_BYTES);
    for (size_t at = HEAD_BYTES; chunk && at + bytes <= CHUNK_BYTES; at += bytes) {
        void **block = (void **)((uint8_t *)chunk + at);
        *block = free_blocks[class];
        free_blocks[class] = block;
    }
}

static void *take_small(unsigned class) {
    lock();
    if (!free_blocks[class]) fill(class);
    void **block = free_blocks[class];
    if (block) free_blocks[class] = *block;
    unlock();
    return block;
}

static void *take(size_t size, int flags) {
    size_t alignment = (size_t)1 << (flags & 0x3f), wanted = size > alignment ? size : alignment;
    unsigned class = 0;
    while (class < CLASSES && (size_t)1 << (class + LEAST_SHIFT) < wanted) class ++;
    if (alignment > HEAD_BYTES) return NULL;
    if (class < CLASSES) return take_small(class);
    size_t mapped = HEAD_BYTES + ((wanted + HEAD_BYTES - 1) & ~(size_t)(HEAD_BYTES - 1));
    struct chunk *chunk = make_chunk(mapped - HEAD_BYTES, mapped);
    return chunk ? (uint8_t *)chunk + HEAD_BYTES : NULL;
}

void _rjem_sdallocx(void *block, size_t size, int flags) {
    struct chunk *chunk = chunk_of(block);
    unsigned class = 0;
    (void)size, (void)flags;
    while (class < CLASSES && (size_t)1 << (class + LEAST_SHIFT) != chunk->block_bytes) class ++;
    if (class == CLASSES) {
        munmap(chunk, chunk->mapped_bytes);
        return;
    }
    lock();
    *(void **)block = free_blocks[class];
    free_blocks[class] = block;
    unlock();
}

void _rjem_free(void *block) {
    if (block) _rjem_sdallocx(block, 0, 0);
}

__attribute__((noinline)) void *_rjem_mallocx(size_t size, int flags) {
    void *block = take(size, flags);
    if (block && flags & IS_ZERO) memset(block, 0, size);
    return block;
}

void *_rjem_malloc(size_t size) {
    return _rjem_mallocx(size, 0);
}

void *_rjem_calloc(size_t count, size_t size) {
    return _rjem_mallocx(count * size, IS_ZERO);
}

void *_rjem_rallocx(void *block, size_t size, int flags) {
    size_t old = chunk_of(block)->block_bytes;
    if (size <= old && old / 2 < size) return block;
    void *moved = _rjem_mallocx(size, flags);
    if (!moved) return NULL;
    memcpy(moved, block, old < size ? old : size);
    _rjem_sdallocx(block, old, flags);
    return moved;
}

void *_rjem_realloc(void *block, size_t size) {
    return block ? _rjem_rallocx(block, size, 0) : _rjem_malloc(size);
}
