// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/arena.h"

#include "runtime/sys/sys.h"

enum { LINE_BYTES = 64, CHUNK_MIN_BYTES = 16 << 10, CHUNK_MAX_BYTES = 1 << 20 };

static bool arena_grow_slow(struct arena *arena) {
    size_t bytes = arena->next_bytes ? arena->next_bytes : sys_page_up(CHUNK_MIN_BYTES);
    uint8_t *chunk = sys_map(bytes);
    if (!chunk) return false;
    arena->at = chunk;
    arena->end = chunk + bytes;
    arena->next_bytes = bytes < CHUNK_MAX_BYTES ? bytes * 2 : bytes;
    return true;
}

void *arena_alloc(struct arena *arena, size_t bytes) {
    bytes = (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
    if (bytes > CHUNK_MIN_BYTES) return sys_map(bytes);
    if ((size_t)(arena->end - arena->at) < bytes && !arena_grow_slow(arena)) return NULL;
    void *memory = arena->at;
    arena->at += bytes;
    return memory;
}
