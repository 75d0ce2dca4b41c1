// SPDX-License-Identifier: Apache-2.0
// Private memory that a thread hands out to its own tables and never takes back. One owner, no
// locks. Chunks double from 16 KiB, or a page that is larger, to 1 MiB, so a short-lived thread
// costs little.
#ifndef RUNTIME_SYS_ARENA_H
#define RUNTIME_SYS_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
    uint8_t *at, *end;
    size_t next_bytes;  // of the next chunk
};

// `bytes` zeroed bytes, aligned to a cache line; NULL without memory.
void *arena_alloc(struct arena *arena, size_t bytes);

#endif
