// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/python_pools.h"

// struct pool_header. A pool has 16 KiB from 3.10 on, 4 KiB before, and begins at a multiple.
struct pool_head {
    uint32_t used_count, padding;
    uint64_t free_block, next, previous;
    uint32_t arena, size_class, next_offset, last_offset;
};
_Static_assert(sizeof(struct pool_head) == 48, "layout");

enum { STEP = 16, CLASSES = 32 };
static const uint64_t pool_sizes[] = {16 << 10, 4 << 10};

static uint64_t block_bytes(const struct pool_head *head) {
    return ((uint64_t)head->size_class + 1) * STEP;
}

static bool is_pool(const struct pool_head *head, uint64_t at, uint64_t pool_bytes) {
    if (head->size_class >= CLASSES) return false;
    const uint64_t size = block_bytes(head);
    bool is_sane = head->last_offset == pool_bytes - size && head->next_offset >= sizeof *head &&
                   head->next_offset <= head->last_offset + size &&
                   (head->next_offset - sizeof *head) % size == 0 &&
                   head->used_count <= (head->next_offset - sizeof *head) / size;
    bool is_free_inside = head->free_block > at && head->free_block < at + pool_bytes;
    return is_sane && (!head->free_block || is_free_inside);
}

// Looks for a pool at an address; returns the bytes from there to the next place to look at.
static uint64_t look_at(const struct stopped_image *live, uint64_t at, struct python_pools *pools) {
    const uint64_t least = pool_sizes[1];
    struct pool_head head;
    if (!core_read(&live->core, at, &head, sizeof head) || !head.last_offset) return least;
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = pool_sizes[i];
        if (at % bytes || !is_pool(&head, at, bytes)) continue;
        pools->pool_count++;
        pools->bytes += stopped_resident_bytes(live, at, at + bytes);
        pools->used_bytes += head.used_count * block_bytes(&head);
        return bytes;
    }
    return least;
}

void python_pools_find(const struct stopped_image *live, struct python_pools *pools) {
    const uint64_t least = pool_sizes[1];
    *pools = (struct python_pools){0};
    for (size_t i = 0; i < live->segments.count; i++) {
        const struct stopped_segment *segment = &live->segments.items[i];
        uint64_t at = (segment->start + least - 1) / least * least;
        while (at + least <= segment->end) {
            const uint64_t there = core_first_there(&live->core, at, segment->end);
            if (there == at)
                at += look_at(live, at, pools);
            else
                at = there / least * least + (there % least ? least : 0);
        }
    }
}
