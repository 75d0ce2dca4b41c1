// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "tool/heap/waste.h"

enum { HEADER = CHUNK_HEADER_BYTES, WORD = 8 };

static bool push(struct glibc_heap *heap, uint64_t address, uint64_t size, enum chunk_kind kind) {
    struct glibc_chunk *slot = array_push(&heap->chunks);
    if (slot) *slot = (struct glibc_chunk){address, size, kind};
    return slot;
}

// What glibc gave for a recorded block, by its head; of another allocator's its own size.
static uint64_t room_of(const struct core_image *core, const struct core_block *block,
                        uint64_t page_bytes) {
    uint64_t word = 0;
    if (!core_read(core, block->address - WORD, &word, sizeof word)) return block->size;
    const uint64_t size = word & ~(uint64_t)CHUNK_FLAGS;
    const uint64_t around = word & CHUNK_HAS_MAPPING ? HEADER : WORD;
    const uint64_t most = block->size + 2 * page_bytes;  // a mapping of its own ends with its page
    bool is_chunk = size > around && size - around >= block->size && size - around <= most;
    return is_chunk ? size - around : block->size;
}

static bool add_recorded(const struct stopped_image *live, const struct core_blocks *blocks,
                         struct glibc_heap *heap) {
    struct core_block_cursor cursor = {.blocks = blocks};
    struct core_block block;
    const uint64_t page_bytes = core_page_bytes(&live->core);
    while (core_blocks_next(&cursor, &block)) {
        uint64_t room = room_of(&live->core, &block, page_bytes);
        if (room > CHUNK_SIZE_MOST) continue;
        if (!push(heap, block.address, room, CHUNK_USED)) return false;
    }
    return true;
}

// The process may have moved its chunks since the window was drawn: they are found again. A last
// one that reaches out is believed if it ends where one did, or others follow.
static bool add_window(const struct heap_window *window, const struct memory_reader *memory,
                       struct glibc_heap *heap, bool *is_left_out) {
    struct resync resync = windows_resync(window, memory);
    struct resync_found found;
    struct resync_chunk chunk;
    const uint64_t end = window->start + WINDOW_BYTES;
    resync.is_copy = true;
    *is_left_out = window->behind && !resync_find(&resync, &found);
    if (!window->behind || *is_left_out) return true;
    for (uint64_t at = found.first; at < resync.end; at += chunk.size) {
        if (!resync_read(&resync, at, &chunk) || chunk.is_last) break;
        const uint64_t block = chunk.address + HEADER, behind = at + chunk.size;
        bool is_inside = block >= window->start && block < end;
        if (is_inside && (behind <= resync.end || found.is_sure) &&
            !push(heap, block, chunk.size - WORD, chunk.is_used ? CHUNK_USED : CHUNK_BINNED))
            return false;
    }
    return true;
}

static bool add_large(const struct core_image *core, const struct large_block *block,
                      struct glibc_heap *heap) {
    uint64_t words[2];
    const uint64_t page_bytes = core_page_bytes(core);
    if (!core_read(core, block->address - HEADER, words, sizeof words) ||
        chunk_mapped_bytes(words, page_bytes, page_bytes, UINT64_MAX) != block->size + HEADER)
        return true;  // it is gone
    return push(heap, block->address, block->size, CHUNK_MAPPED);
}

static int compare_chunks(const void *a, const void *b) {
    const struct glibc_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

bool waste_drawn_blocks(const struct stopped_image *live, const struct core_blocks *blocks,
                        struct glibc_heap *heap, size_t *left_out) {
    const struct heap_windows *windows = &live->windows;
    const struct memory_view view = core_view(&live->core);
    bool is_ok = true;
    *left_out = 0;
    *heap = (struct glibc_heap){0};
    if (blocks) return add_recorded(live, blocks, heap);
    for (size_t i = 0; i < windows->drawn.count && is_ok; i++) {
        bool is_left_out = false;
        is_ok = add_window(&windows->drawn.items[i], &view.reader, heap, &is_left_out);
        *left_out += is_left_out;
    }
    for (size_t i = 0; i < windows->large.count && is_ok; i++)
        is_ok = add_large(&live->core, &windows->large.items[i], heap);
    if (heap->chunks.count)
        qsort(heap->chunks.items, heap->chunks.count, sizeof *heap->chunks.items, compare_chunks);
    return is_ok;
}
